// SPDX-License-Identifier: Apache-2.0
#include "report/export/export.h"

#include <cstdio>
#include <cstdlib>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "core/candidate/knobs.h"
#include "core/candidate/language.h"
#include "report/view.h"
#include "task/open/open_task.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kExportOptions[] = {
    {"RUN", "", "", "Run whose winner to export; with --kernel, the task.", true},
    {"--kernel", "FILE", "", "Export this .cu or .cpp file instead; RUN is then its task."},
    {"--output", "DIR", "",
     "Where the files go; by default export/ in the run folder, a.export/ beside a.jsonl."},
    {"--candidate", "N", "", "Candidate to export; the winner by default."},
    {"--case", "NAME", "", "Case whose sizes to compile in; the largest timed one by default."},
    {"--knob", "NAME=VALUE...", "",
     "With --kernel: value of a knob; by default the first in its list."},
    kPrecisionOption,
    kSetOption,
    kPythonOption,
    {"--no-build", "", "", "Do not check that the exported kernel compiles on its own."},
    {"--json", "", "", "Print the files as JSON."},
};

struct Chosen {
  Task task;
  ExportRequest request;
};

std::string measured_text(const Evaluation& evaluation, const std::string& case_name) {
  if (evaluation.correct() == nullptr) return "";
  for (const Timing& timing : evaluation.correct()->timings) {
    if (timing.case_name != case_name) continue;
    return human_us(timing.median_us) + " (" + human_us(timing.low_us) + " to " +
           human_us(timing.high_us) + ", " + timing.method + ")";
  }
  return "";
}

const StoredCandidate* find_candidate(const RunView& view, const Story& story,
                                      const Options& options) {
  if (!options.has("--candidate")) {
    if (story.best != nullptr) return story.best;
    throw Fatal({ErrorKind::kBadInput, "the run has no correct candidate",
                 "continue it with `kernelpro resume`, or pick a candidate with --candidate"});
  }
  const auto found = story.by_id.find(options.integer("--candidate"));
  if (found != story.by_id.end()) return found->second;
  throw Fatal({ErrorKind::kBadInput, "the run has no candidate " + options.text("--candidate"),
               "`kernelpro show " + view.directory + " --json` lists them"});
}

// A run has its knobs, sizes and precision already.
void refuse_what_needs_a_kernel(const Options& options) {
  for (const char* name : {"--knob", "--set", "--precision"}) {
    if (!options.has(name)) continue;
    throw Fatal({ErrorKind::kBadInput,
                 std::string(name) + " needs --kernel: a run's own is exported",
                 "leave it out, or name another of its candidates with --candidate N"});
  }
}

void from_run(const Options& options, Chosen* chosen) {
  refuse_what_needs_a_kernel(options);
  const RunView view = require(load_run_view(options.text("RUN")));
  const Story story = tell(view);
  const StoredCandidate* candidate = find_candidate(view, story, options);
  chosen->task = view.header.task;
  ExportRequest& request = chosen->request;
  request.c = require(export_case(chosen->task, view.header.target, options.text("--case")));
  request.candidate = candidate->known.candidate;
  request.device = view.header.machine.name;
  if (!view.header.machine.arch.empty()) request.arch = view.header.machine.arch;
  if (view.confirmation && view.confirmation->best == candidate->known.id) {
    request.measured = measured_text(view.confirmation->evaluation, request.c->name);
  }
  if (request.measured.empty() && candidate->evaluated) {
    request.measured = measured_text(candidate->known.evaluation, request.c->name);
  }
}

void from_kernel(const Options& options, Chosen* chosen) {
  OpenSettings open = read_open_settings(options);
  open.target = TargetKind::kCpu;  // only shapes are needed: any PyTorch will do
  open.memory_bytes = 1e15;
  chosen->task = require(open_task(options.text("RUN"), open)).task;
  ExportRequest& request = chosen->request;
  Candidate& candidate = request.candidate;
  const LanguageRow* language = language_of_file(options.text("--kernel"));
  if (language == nullptr) language = &native_language(TargetKind::kCuda);
  request.c = require(export_case(chosen->task, language->target, options.text("--case")));
  candidate = require(candidate_of(chosen->task, language->language,
                                   require(read_file(options.text("--kernel"), 4 << 20)), {},
                                   read_pairs(options, "--knob")));
}

std::string cpp_path() {
  const char* chosen = std::getenv("CXX");
  return find_program(chosen != nullptr && *chosen != '\0' ? chosen : "c++");
}

// "" when the kernel compiles on its own, otherwise the compiler's output.
std::string build_problem(const std::string& directory, const std::string& compiler,
                          const ExportRequest& request) {
  const TempDir scratch;
  Command command;
  command.cwd = directory;
  command.env = {"TMPDIR=" + scratch.path()};
  command.limits.wall_seconds = 300;
  command.argv = {compiler};
  for (const std::string& each : export_build(request)) command.argv.push_back(each);
  command.argv.insert(command.argv.end(), {"-o", join(scratch.path(), "kernel.o")});
  const Exit exit = require(run(command));
  if (exit.ok()) return "";
  return exit.kind == Exit::Kind::kExited ? exit.output
                                          : compiler + " " + exit.describe(command.limits);
}

// `builds`: null where no compiler was asked.
void print_json(const Chosen& chosen, const std::vector<std::string>& paths, const Json& builds) {
  const Json json = {{"schema", 1},
                     {"task", chosen.task.name},
                     {"case", chosen.request.c->name},
                     {"language", language_name(chosen.request.candidate.language)},
                     {"precision", precision_name(chosen.task.precision)},
                     {"files", paths},
                     {"builds", builds}};
  std::printf("%s\n", dump_json(json, 2).c_str());
}

int run_export(const Options& options) {
  Chosen chosen;
  if (options.has("--kernel")) {
    from_kernel(options, &chosen);
  } else {
    from_run(options, &chosen);
  }
  chosen.request.task = &chosen.task;
  const bool in_run = !options.has("--kernel");
  const std::string directory = options.has("--output") ? options.text("--output")
                                : in_run ? default_output(options.text("RUN"), "export")
                                         : "export";
  require(make_dirs(directory));
  std::vector<std::string> paths;
  for (const ExportedFile& file : require(export_kernel(chosen.request))) {
    paths.push_back(join(directory, file.name));
    require(write_file(paths.back(), file.text));
    if (!options.flag("--json")) std::printf("%s\n", paths.back().c_str());
  }
  const LanguageRow& language = language_row(chosen.request.candidate.language);
  const bool cuda = language.target == TargetKind::kCuda;
  const std::string compiler = cuda ? find_cuda_tool("nvcc") : cpp_path();
  const bool asked = !options.flag("--no-build") && !compiler.empty();
  const std::string problem = asked ? build_problem(directory, compiler, chosen.request) : "";
  if (options.flag("--json")) print_json(chosen, paths, asked ? Json(problem.empty()) : Json());
  if (problem.empty()) return 0;
  std::fprintf(stderr, "%s does not compile on its own:\n%s\n%s",
               kernel_file_name(language).c_str(), clip(problem, 4000).c_str(),
               cuda ? "Functions without __device__ are for the device in plan form and for the "
                      "host elsewhere: mark them __device__.\n"
                    : "");
  return 1;
}

}  // namespace

extern const Subcommand kExport{"export", "Export a kernel as standalone files.", kExportOptions,
                                run_export};

}  // namespace kernelpro
