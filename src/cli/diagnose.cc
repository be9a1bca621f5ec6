// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/tasks.h"
#include "core/json.h"
#include "diagnose/runner.h"
#include "report/diagnosis.h"
#include "run/gather/gather.h"
#include "run/store/store.h"
#include "run/store/tool_record.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kDiagnoseOptions[] = {
    {"WHAT", "", "",
     "RUN or RUN:N (a candidate), a kernel .cu with --task, a .cubin, .so or program, a .ncu-rep "
     "or "
     "ncu's CSV, an .nsys-rep or its SQLite or CSV export, saved evidence."},
    {"--", "PROGRAM ARGUMENT...", "", "A program to run and trace on this GPU."},
    {"--task", "TASK", "", "The task of a kernel or report: a folder, or a PyTorch file."},
    {"--case", "NAME", "", "Its case; by default the timed one that moves most bytes."},
    {"--bytes", "N", "", "Without a task: bytes that one call must read and write."},
    {"--flops", "N", "", "Without a task: floating-point operations of one call."},
    {"--matmul-flops", "N", "", "How many of them are matrix products; all, with half inputs."},
    {"--dtype", "TYPE", "", "Without a task: type of the inputs.", false, "fp32|fp16|bf16"},
    {"--calls", "N", "1", "Calls of the task that the report holds."},
    {"--device", "NAME", "", "GPU to judge by, such as H100, when the report does not say."},
    {"--kernel", "TEXT", "", "Only kernels with this in their name."},
    {"--code", "FILE", "", "Cubin, .so or program with the machine code of a report's kernels."},
    {"--range", "NAME", "", "Of a trace: only what NVTX ranges of this name launched."},
    {"--timeout", "S", "600", "Longest time for the program, or for one call of a kernel."},
    {"--no-counters", "", "", "Do not run a program again under ncu for its kernels' counters."},
    {"--gpu", "ID", "", "GPU by index or UUID; the first by default."},
    kPrecisionOption,
    kSetOption,
    kPythonOption,
    {"--all", "", "", "Also what became of every tool, every number, everything missing."},
    {"--for-model", "", "", "Print the text that a writing model gets."},
    {"--json", "", "", "Print subject, evidence and diagnosis as JSON."},
    {"--evidence", "FILE", "", "Write what was collected, to be diagnosed again anywhere."},
    {"--record", "FILE", "", "Record of what came of findings; by default this user's own."},
    {"--no-record", "", "", "Rank without any record."},
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
  theory.dtype = options.text("--dtype");
  theory.device = options.text("--device");
  theory.calls = static_cast<int>(options.integer("--calls"));
  theory.kernel = options.text("--kernel");
  theory.code = options.text("--code");
  theory.range = options.text("--range");
  if (theory.calls < 1 || theory.calls > 1000000) {
    throw Fatal({ErrorKind::kBadInput, "--calls is not between 1 and 1000000",
                 "say how many calls of the task the report holds"});
  }
  return theory;
}

// Splits "runs/softmax:17" into the run and 17.
std::optional<std::pair<std::string, std::int64_t>> as_run(const std::string& what) {
  const auto names_run = [](const std::string& path) { return is_dir(path) || is_run(path); };
  if (names_run(what)) return std::pair(what, std::int64_t{0});
  const std::size_t colon = what.rfind(':');
  if (colon == std::string::npos || !names_run(what.substr(0, colon))) return std::nullopt;
  const std::string digits = what.substr(colon + 1);
  if (digits.empty() || digits.size() > 15 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    throw Fatal({ErrorKind::kBadInput, "\"" + digits + "\" is no number of a candidate",
                 "name it as in " + what.substr(0, colon) + ":17"});
  }
  return std::pair(what.substr(0, colon), static_cast<std::int64_t>(std::stoll(digits)));
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
                 "name a run, a kernel, a file of a profiler, or -- PROGRAM"});
  }
  if (const auto run = as_run(what)) return require(gather_run(run->first, run->second));
  if (what.ends_with(".cu") || what.ends_with(".cpp") || what.ends_with(".cc")) {
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

void print_for_people(const Gathered& gathered, const Diagnosis& diagnosis, bool all) {
  DiagnosisStyle style;
  style.color = display_kind(false, stdout) == DisplayKind::kTerminal;
  style.width = terminal_columns(stdout);
  style.all = all;
  style.more = "--all";
  std::string head = printable(gathered.subject) + ": by " + gathered.basis;
  if (!gathered.ceilings.empty()) head += "; ceilings " + gathered.ceilings;
  std::string text = wrapped(head + ".", style.width, 0);
  for (const std::string& note : gathered.notes) {
    text += wrapped("note: " + printable(note), style.width, 0);
  }
  text += "\n" + diagnosis_for_terminal(diagnosis, gathered.evidence, style);
  std::fputs(text.c_str(), stdout);
}

int run_diagnose(const Options& options) {
  const Gathered gathered = gather(options);
  if (options.has("--evidence")) {
    require(write_file(options.text("--evidence"), evidence_to_json(gathered.evidence) + "\n"));
  }
  const Diagnosis diagnosis = diagnose_with(gathered.evidence, read_record_of(options));
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

const Subcommand kDiagnose{"diagnose", "Tell what limits a kernel or program, and what to change.",
                           kDiagnoseOptions, run_diagnose};

}  // namespace kernelpro
