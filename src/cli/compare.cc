// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "core/evidence/target.h"
#include "diagnose/diagnose.h"
#include "measure/remote/stations.h"
#include "report/comparison.h"
#include "run/evaluate_one.h"
#include "run/gather/gather.h"
#include "run/store/tool_record.h"
#include "task/open/open_task.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kCompareOptions[] = {
    {"OLD", "", "",
     "A kernel's source with --task; else whatever diagnose reads: a .cubin, .so or program, a "
     "profiler's report, saved evidence, a candidate (RUN:N).",
     true},
    {"NEW", "", "", "The other version, of the same kind.", true},
    {"--task", "TASK", "", "Task of the two sources: a folder, or a PyTorch file."},
    {"--at-least", "F", "",
     "Exit with status 1 when NEW is clearly below F times the speed of OLD; 0.97 allows 3 % "
     "loss."},
    {"--kernel", "TEXT", "", "Of reports and machine code: only kernels whose names contain TEXT."},
    kPrecisionOption,
    kSetOption,
    profile_option("off"),
    {"--gpu", "ID", "", "GPU by index or UUID; the first by default."},
    {"--timeout", "S", "30", "Time limit for one call, in seconds."},
    kStationOption,
    kPythonOption,
    kIncludeOption,
    {"--json", "", "", "Print JSON, with every metric that differs."},
};

SideBySide compare_sources(const Options& options, const std::string& before,
                           const std::string& after) {
  const std::string task = options.text("--task");
  const Host host = require(Host::of(read_stations(options)));
  const std::vector<KernelFile> kernels = {read_kernel(before), read_kernel(after)};
  EvaluateManySettings settings;
  settings.station.stations = read_stations(options);
  settings.station.target = target_of_kernels(host, kernels);
  settings.station.timeout_s = options.real("--timeout");
  settings.station.counters =
      counter_set_from_name(options.text("--profile")).value_or(CounterSet::kOff);
  settings.station.python = options.text("--python");
  settings.station.include_dirs = read_include_dirs(options);
  settings.station.gpus = read_gpus(options, host);
  if (!settings.station.gpus.empty()) settings.station.gpu = settings.station.gpus.front();
  settings.against = kernels[0];
  settings.last = true;
  OpenSettings open = read_open_settings(options);
  open.target = settings.station.target;
  open.cpu_only = open.target == TargetKind::kCpu;
  open.gpu = settings.station.gpu;
  OpenedTask opened = require(host.open(task, open));
  const auto results = require(evaluate_many(
      opened.task, kernels, settings, [](std::size_t, const EvaluateOneResult&) {},
      stations_anywhere(std::move(opened.module))));
  std::vector<ComparedSide> sides;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Evaluation& evaluation = results[i].evaluation;
    ComparedSide side{kernels[i].path, "", results[i].evidence, results[i].diagnosis};
    if (evaluation.correct() == nullptr) side.wrong = outcome_summary(evaluation.outcome);
    sides.push_back(std::move(side));
  }
  std::optional<Correct::Versus> paired;
  if (const Correct* correct = results[1].evaluation.correct()) paired = correct->versus;
  return compare(sides[0], sides[1], paired);
}

ComparedSide gathered_side(const Options& options, const std::string& what) {
  if (const LanguageRow* row = language_of_file(what); row != nullptr && !is_dir(what)) {
    throw Fatal({ErrorKind::kBadInput, what + " is a source, and no task says what it computes",
                 "add --task TASK; machine code and reports need none"});
  }
  Theory theory;
  theory.open = read_open_settings(options);
  theory.open.gpu = options.text("--gpu");
  theory.kernel = options.text("--kernel");
  const auto candidate = candidate_named(what);
  Gathered gathered = require(candidate ? gather_run(candidate->first, candidate->second)
                                        : gather_file(what, theory));
  ComparedSide side{what, "", std::move(gathered.evidence), {}};
  side.diagnosis = diagnose(side.evidence);
  return side;
}

// A ratio of times says something only where both did the same work.
void refuse_other_work(const ComparedSide& before, const ComparedSide& after) {
  std::string differs;
  const auto target = evidence_target(before.evidence), other = evidence_target(after.evidence);
  if (target && other && *target != *other) differs = "they are for different targets";
  for (const char* name : {"task.compulsory_bytes", "task.flops"}) {
    const auto old = before.evidence.get(name), now = after.evidence.get(name);
    if (old && now && *old != *now)
      differs = "they do different work, for another task or other sizes";
  }
  if (differs.empty()) return;
  throw Fatal({ErrorKind::kBadInput,
               before.name + " and " + after.name + " cannot be compared: " + differs,
               "give two versions of one kernel, measured on the same sizes"});
}

int run_compare(const Options& options) {
  const std::string before = options.text("OLD"), after = options.text("NEW");
  std::optional<double> least;
  if (options.has("--at-least")) least = options.real("--at-least");
  if (least && !(*least > 0 && *least < 1000)) {
    throw Fatal({ErrorKind::kBadInput, "--at-least is a speed-up, as 0.97 or 1.1",
                 "give a number between 0 and 1000"});
  }
  const auto compare_recorded = [&] {
    const ComparedSide one = gathered_side(options, before), other = gathered_side(options, after);
    refuse_other_work(one, other);
    return compare(one, other, std::nullopt);
  };
  const SideBySide comparison =
      options.has("--task") ? compare_sources(options, before, after) : compare_recorded();
  if (least && comparison.after_wrong.empty() && !speedup_of(comparison)) {
    throw Fatal({ErrorKind::kBadInput, "--at-least needs times, and these two versions have none",
                 "compare sources with --task, or reports that have times; or leave it out"});
  }
  if (options.flag("--json")) {
    std::printf("%s\n", dump_json(comparison_json(comparison), 2).c_str());
  } else {
    std::fputs(comparison_text(comparison).c_str(), stdout);
  }
  if (!comparison.after_wrong.empty()) return 1;
  if (!least || !falls_below(comparison, *least)) return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "kernelpro: %s is below %s times the speed of %s\n", after.c_str(),
               number(*least, 4).c_str(), before.c_str());
  return 1;
}

}  // namespace

extern const Subcommand kCompare{
    "compare", "Compare two versions of a kernel: time, account, registers, machine code.",
    kCompareOptions, run_compare};

}  // namespace kernelpro
