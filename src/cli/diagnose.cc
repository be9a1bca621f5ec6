// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose.h"

#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/tasks.h"
#include "report/diagnosis.h"
#include "run/gather/gather.h"
#include "run/store/store.h"
#include "run/store/tool_record.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kDiagnoseOptions[] = {
    {"WHAT", "", "",
     "A run (RUN) or candidate (RUN:N), a .cu kernel with --task, a .cubin, .so or program, a "
     ".ncu-rep, ncu's CSV or its printed pages, an .nsys-rep or its SQLite or CSV export, or saved "
     "evidence. - reads text from standard input."},
    {"--", "PROGRAM ARGUMENT...", "", "A program to run and trace on this GPU."},
    {"--task", "TASK", "",
     "Task that the kernel or report belongs to: a folder, or a PyTorch file."},
    {"--case", "NAME", "", "Case of the task; by default the timed one that moves the most bytes."},
    {"--bytes", "N", "", "Without a task: bytes that one call must read and write."},
    {"--flops", "N", "", "Without a task: floating-point operations of one call."},
    {"--matmul-flops", "N", "",
     "How many of --flops are matrix products; by default all with half inputs, else none."},
    {"--dtype", "TYPE", "", "Without a task: type of the inputs.", false, "fp32|fp16|bf16"},
    {"--calls", "N", "1", "Calls of the task that the report covers."},
    {"--device", "NAME", "", "GPU of the report, such as H100, if it does not name one."},
    {"--kernel", "TEXT", "", "Only kernels whose names contain TEXT."},
    {"--code", "FILE", "", "Cubin, .so or program with the machine code of a report's kernels."},
    {"--range", "NAME", "", "In a trace: only work launched inside NVTX ranges of this name."},
    {"--timeout", "S", "600",
     "Time limit for the program, or for one call of a kernel, in seconds."},
    {"--no-counters", "", "",
     "Do not run the program again to collect counters, under ncu, and samples."},
    {"--gpu", "ID", "", "GPU by index or UUID; the first by default."},
    kPrecisionOption,
    kSetOption,
    kPythonOption,
    {"--all", "", "", "Also print what each tool found, every number, and what is missing."},
    {"--for-model", "", "", "Print the text that a language model gets."},
    {"--json", "", "", "Print subject, evidence and diagnosis as JSON."},
    {"--html", "FILE", "", "Write a page for a browser as well."},
    {"--evidence", "FILE", "", "Save the collected evidence, to diagnose it again on any machine."},
    {"--keep", "", "", "Of RUN:N: store the diagnosis in the run, for what follows in it."},
    {"--record", "FILE", "", "Record of how past findings turned out; by default this user's."},
    {"--no-record", "", "", "Rank findings without the record."},
};

std::optional<double> given(const Options& options, const char* name) {
  return options.has(name) ? std::optional<double>(options.real(name)) : std::nullopt;
}

Theory read_theory(const Options& options) {
  Theory theory;
  theory.task = options.text("--task");
  theory.open = read_open_settings(options);
  theory.open.gpu = options.text("--gpu");
  theory.case_name = options.text("--case");
  theory.bytes = given(options, "--bytes");
  theory.flops = given(options, "--flops");
  theory.matmul_flops = given(options, "--matmul-flops");
  theory.dtype = dtype_from_name(options.text("--dtype"));
  theory.device = options.text("--device");
  theory.calls = options.small("--calls", 1, 1000000);
  theory.kernel = options.text("--kernel");
  theory.code = options.text("--code");
  theory.range = options.text("--range");
  return theory;
}

Gathered gather(const Options& options) {
  const std::string what = options.text("WHAT");
  const Theory theory = read_theory(options);
  const double timeout_s = options.real("--timeout");
  if (!options.rest.empty()) {
    if (!what.empty()) {
      throw Fatal(
          {ErrorKind::kBadInput, "both " + what + " and a program were given", "give one of them"});
    }
    return require(gather_program(options.rest, theory, timeout_s, !options.flag("--no-counters")));
  }
  if (what.empty()) {
    throw Fatal({ErrorKind::kBadInput, "nothing to diagnose was given",
                 "name a run, a kernel, a profiler's report, or -- PROGRAM"});
  }
  if (const auto run = candidate_named(what)) return require(gather_run(run->first, run->second));
  if (const LanguageRow* language = language_of_file(what); language && language->compiled) {
    RunSettings settings;
    settings.gpu = options.text("--gpu");
    settings.timeout_s = std::min(timeout_s, 600.0);
    return require(gather_kernel(what, theory, settings));
  }
  return require(gather_file(what, theory));
}

ToolRecord read_record_of(const Options& options) {
  if (options.flag("--no-record")) return {};
  if (options.has("--record")) return require(read_record(options.text("--record"), true));
  // An unreadable default record counts as empty.
  return read_record(user_record_path(), false).value_or(ToolRecord());
}

Json as_json(const Gathered& gathered, const Diagnosis& diagnosis) {
  return {{"schema", 1},
          {"subject", gathered.subject},
          {"basis", gathered.basis},
          {"ceilings", gathered.ceilings},
          {"notes", gathered.notes},
          {"diagnosis", parse_json(diagnosis_to_json(diagnosis)).value_or(Json())},
          {"evidence", parse_json(evidence_to_json(gathered.evidence)).value_or(Json())}};
}

// "based on a trace of the program; ceilings measured on NVIDIA H200"
std::string basis_of(const Gathered& gathered) {
  std::string text = "based on " + gathered.basis;
  if (!gathered.ceilings.empty()) text += "; ceilings " + gathered.ceilings;
  return text;
}

void print_for_people(const Gathered& gathered, const Diagnosis& diagnosis, bool all) {
  DiagnosisStyle style;
  style.color = display_kind(false, stdout) == DisplayKind::kTerminal;
  style.width = terminal_columns(stdout);
  style.all = all;
  style.more = "--all";
  std::string text =
      wrapped(printable(gathered.subject) + ": " + basis_of(gathered) + ".", style.width, 0);
  for (const std::string& note : gathered.notes) {
    text += wrapped("note: " + printable(note), style.width, 0);
  }
  text += "\n" + diagnosis_for_terminal(diagnosis, gathered.evidence, style);
  std::fputs(text.c_str(), stdout);
}

// For the search, and for requests, when the run goes on.
void keep_in_run(const std::string& what, const Diagnosis& diagnosis) {
  const auto named = candidate_named(what);
  if (!named || named->second == 0) {
    throw Fatal({ErrorKind::kBadInput, "--keep needs one candidate of a run",
                 "name it as RUN:N; `kernelpro show RUN` lists them"});
  }
  const auto store = require(Store::open(named->first, Store::Mode::kWrite));
  require(store->revise({{named->second, diagnosis, std::nullopt}}));
}

int run_diagnose(const Options& options) {
  const Gathered gathered = gather(options);
  if (options.has("--evidence")) {
    require(write_file(options.text("--evidence"), evidence_to_json(gathered.evidence) + "\n"));
  }
  const Diagnosis diagnosis = diagnose(gathered.evidence, read_record_of(options));
  if (options.flag("--keep")) keep_in_run(options.text("WHAT"), diagnosis);
  if (options.has("--html")) {
    const DiagnosedSubject subject{gathered.subject, basis_of(gathered), gathered.notes};
    require(
        write_file(options.text("--html"), diagnosis_html(subject, diagnosis, gathered.evidence)));
  }
  if (options.flag("--json")) {
    std::printf("%s\n", dump_json(as_json(gathered, diagnosis), 2).c_str());
  } else if (options.flag("--for-model")) {
    std::fputs(diagnosis_to_text(diagnosis).c_str(), stdout);
  } else {
    print_for_people(gathered, diagnosis, options.flag("--all"));
  }
  return 0;
}

}  // namespace

extern const Subcommand kDiagnose{"diagnose",
                                  "Find what limits a kernel or program, and what to change.",
                                  kDiagnoseOptions, run_diagnose};

}  // namespace kernelpro
