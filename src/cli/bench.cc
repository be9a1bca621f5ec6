// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <set>

#include "base/files.h"
#include "base/stop.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/side_by_side.h"
#include "cli/tasks.h"
#include "run/proposers.h"
#include "suite/report.h"
#include "suite/slurm.h"
#include "suite/work.h"
#include "write/model/spec.h"

namespace kernelpro {

extern const Subcommand kOptimize;

namespace {

// Values of --launcher.
constexpr std::string_view kHere = "local";
constexpr std::string_view kSlurm = "slurm";
std::string launchers() { return std::string(kHere) + "|" + std::string(kSlurm); }

constexpr OptionSpec kOwn[] = {
    {"SUITE", "", "",
     "KernelBench checkout, or folder of task folders; leave it out to continue the suite in "
     "--out."},
    {"--out", "DIR", "",
     "Folder for the suite's runs and report; the same command continues there."},
    {"--levels", "LIST", "", "KernelBench: levels, such as 1,2; 1 to 3 by default."},
    {"--range", "A-B", "", "KernelBench: problem numbers within each level, such as 1-20."},
    {"--tasks", "LIST", "", "Only these tasks, such as 1/23,2/9, or folder names."},
    {"--exclude", "FILE", "", "TOML or CSV file of tasks to leave out, each with a reason."},
    {"--keep-degenerate", "", "", "Also run the tasks on the built-in list of degenerate ones."},
    {"--sample", "N", "", "Only N tasks per level, chosen by a hash of --seed and their names."},
    {"--arms", "NAME=A,B...", "", "Run every task with each of these values, and compare."},
    {"--cross", "", "", "Run every combination of several --arms."},
    {"--baselines", "", "", "Also time PyTorch: eager, compiled, and as a CUDA graph."},
    {"--from", "DIR", "", "With --proposer replay: the suite to replay."},
    {"--launcher", "NAME", kHere, "Where tasks run: here, or in a Slurm job array.", false, "",
     launchers},
    {"--jobs", "N", "",
     "With --launcher slurm: jobs in the array; by default one for each unfinished run, 64 at "
     "most."},
    {"--slurm-option", "OPT...", "", "An option for sbatch, such as partition=gpu."},
    {"--no-wait", "", "", "With --launcher slurm: submit and return."},
    {"--poll", "S", "5", "With --launcher slurm: seconds between checks of the queue."},
    {"--worker", "I/N", "",
     "Work on the suite in --out as worker I of N; the jobs of a Slurm array do."},
    {"--json", "", "", "Print the report as JSON."},
};
// Options of `optimize` that concern one task or would make runs depend on one another.
constexpr std::string_view kNotOurs[] = {"TASK",        "--run",        "--from",
                                         "--start",     "--start-from", "--set",
                                         "--no-record", "--json",       "--station"};
// Options that are allowed for an existing suite.
constexpr std::string_view kAnyTime[] = {"--out",          "--launcher", "--jobs",
                                         "--slurm-option", "--no-wait",  "--poll",
                                         "--worker",       "--json",     "--gpu"};

// Our options, and every option of `optimize` that applies to all runs of a suite.
const std::vector<OptionSpec>& rows() {
  static const std::vector<OptionSpec> all = [] {
    std::vector<OptionSpec> list(std::begin(kOwn), std::end(kOwn));
    for (const OptionSpec& spec : kOptimize.options) {
      const bool left_out =
          std::find(std::begin(kNotOurs), std::end(kNotOurs), spec.name) != std::end(kNotOurs);
      if (!left_out) list.push_back(spec);
    }
    return list;
  }();
  return all;
}

[[noreturn]] void bad(std::string message, std::string next) {
  throw Fatal({ErrorKind::kBadInput, std::move(message), std::move(next)});
}

// An integer of at least 1; `otherwise` when it was not given.
int counted(const Options& options, const char* name, int otherwise) {
  return options.has(name) ? options.small(name, 1, 1000000) : otherwise;
}

Selection read_selection(const Options& options) {
  SelectSettings select;
  select.suite = options.text("SUITE");
  select.levels = options.text("--levels");
  select.range = options.text("--range");
  select.tasks = options.text("--tasks");
  select.exclude = options.text("--exclude");
  select.degenerate = options.flag("--keep-degenerate");
  select.sample = counted(options, "--sample", 0);
  select.seed = static_cast<std::uint64_t>(options.integer("--seed"));
  return require(select_tasks(select));
}

SuiteSettings read_new(const Options& options) {
  SuiteSettings settings;
  settings.suite = absolute(options.text("SUITE"));
  settings.run = read_run_settings(options);
  // Before there is a suite that holds them.
  for (const std::string* model :
       {&settings.run.roles.planner, &settings.run.roles.coder, &settings.run.roles.fixer}) {
    if (!model->empty()) require(parse_model_spec(*model));
  }
  if (!settings.run.gpus.empty()) {  // each task uses its worker's GPU
    settings.run.gpus.clear();
    settings.run.gpu.clear();
  }
  const auto arms =
      options.has("--arms") ? lines(options.text("--arms")) : std::vector<std::string>();
  settings.arms = require(parse_arms(arms, options.flag("--cross")));
  Selection selection = read_selection(options);
  settings.kernelbench = selection.kernelbench;
  if (selection.kernelbench && proposer_of(settings.run).needs_knobs) {
    bad("KernelBench's tasks have no kernel with knobs that the tuner could move",
        "name a writer: --model SPEC, or --proposer exchange");
  }
  settings.rule = selection.rule;
  settings.tasks = std::move(selection.tasks);
  settings.excluded = std::move(selection.excluded);
  const OpenSettings open = read_open_settings(options);
  settings.target = options.text("--target");
  settings.precision = open.precision;
  settings.python = open.python;
  settings.baselines = options.flag("--baselines");
  if (options.has("--from")) settings.replay_suite = absolute(options.text("--from"));
  const bool replay = proposer_of(settings.run).replays;
  if (replay != options.has("--from")) {
    bad(replay ? "--proposer replay needs a suite to replay"
               : "--from names a suite to replay, but the proposer is " + settings.run.proposer,
        "give both --proposer replay and --from DIR, or neither");
  }
  if (replay) require(read_suite(settings.replay_suite));
  return settings;
}

// Without SUITE, rejects options that would change the suite.
void check_nothing_new(const Options& options) {
  for (const OptionSpec& spec : rows()) {
    const bool any_time =
        std::find(std::begin(kAnyTime), std::end(kAnyTime), spec.name) != std::end(kAnyTime);
    if (any_time || options.text(spec.name) == spec.initial) continue;
    bad("without SUITE, bench continues the suite in --out with its own settings, and " +
            std::string(spec.name) + " would change it",
        "leave it out, or name SUITE and a new folder to start another suite");
  }
}

SuiteSettings read_settings(const Options& options) {
  const std::string out = options.text("--out");
  if (out.empty()) bad("the suite's runs need a folder", "name one with --out DIR");
  if (!options.has("SUITE")) {
    check_nothing_new(options);
    return require(read_suite(out));
  }
  if (options.has("--worker")) {
    bad("--worker continues an existing suite, but SUITE starts one", "leave SUITE out");
  }
  SuiteSettings settings = read_new(options);
  settings.directory = absolute(out);
  require(begin_suite(settings));
  return settings;
}

bool wants_slurm(const Options& options) { return options.text("--launcher") == kSlurm; }

void check_launcher(const Options& options) {
  if (wants_slurm(options)) {
    if (options.has("--worker"))
      bad("--worker and --launcher slurm exclude each other",
          "leave one of them out: Slurm's jobs are started as workers");
    return;
  }
  for (const char* name : {"--jobs", "--slurm-option", "--no-wait"}) {
    if (options.has(name))
      bad(std::string(name) + " needs --launcher slurm", "give both or neither");
  }
}

WorkSettings read_work(const Options& options) {
  WorkSettings work;
  const auto gpus = read_gpus(options);
  if (!gpus.empty()) work.gpu = gpus.front();
  if (!options.has("--worker")) return work;
  int index = -1, count = 0;
  char rest = 0;
  const std::string text = options.text("--worker");
  if (std::sscanf(text.c_str(), "%d/%d%c", &index, &count, &rest) != 2 || index < 0 ||
      index >= count) {
    bad("--worker \"" + text + "\" is not I/N with I from 0 to N-1",
        "write, for example, --worker 0/4");
  }
  work.index = index;
  work.count = count;
  return work;
}

// True when nothing is left to do.
bool work_here(const SuiteSettings& settings, const Options& options, bool quiet) {
  WorkHears hears;
  if (!quiet) {
    hears.begin = [](const TaskResult& result) {
      std::printf("%s %s%s\n", result.arm.c_str(), result.task.name.c_str(),
                  std::string(result.evaluations > 0 ? kGoesOn : kBegins).c_str());
      std::fflush(stdout);
    };
    hears.end = [](const TaskResult& result) {
      std::printf("%s\n", result_line(result).c_str());
      std::fflush(stdout);
    };
  }
  const bool log = options.has("--worker");  // of a job
  const bool replies = !quiet && settings.run.proposer == kExchangeName;
  if (log) {
    hears.progress = [](const Progress& progress) {
      if (progress.event != Event::kEvaluated) return;
      std::printf("%s%lld: %s\n", std::string(kCandidate).c_str(),
                  static_cast<long long>(progress.candidate), progress.outcome.c_str());
      std::fflush(stdout);
    };
  } else if (replies) {
    hears.progress = [](const Progress& progress) {
      if (progress.event != Event::kWaiting && progress.event != Event::kRefused) return;
      std::printf("  %s\n", event_line(progress).c_str());
      std::fflush(stdout);
    };
  }
  const WorkSummary summary = require(work_on(settings, read_work(options), hears));
  if (!quiet && summary.held > 0) {
    std::printf("other processes are working on %d of the tasks\n", summary.held);
  }
  return summary.left == 0;
}

bool work_on_slurm(const SuiteSettings& settings, const Options& options, bool quiet) {
  SlurmSettings slurm;
  slurm.jobs = counted(options, "--jobs", 0);
  if (options.has("--slurm-option")) slurm.options = lines(options.text("--slurm-option"));
  slurm.wait = !options.flag("--no-wait");
  slurm.poll_s = std::max(0.2, options.real("--poll"));
  SlurmHears hears;
  if (!quiet) {
    hears.note = [](const std::string& sentence) {
      std::printf("%s\n", sentence.c_str());
      std::fflush(stdout);
    };
    hears.end = [](const TaskResult& result) {
      std::printf("%s\n", result_line(result).c_str());
      std::fflush(stdout);
    };
  }
  return require(run_on_slurm(settings, slurm, hears));
}

// A worker for each GPU; true when nothing is left to do.
bool work_on_gpus(const SuiteSettings& settings, const std::vector<std::string>& gpus, bool quiet) {
  std::vector<std::vector<std::string>> commands;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    commands.push_back({join(executable_dir(), "kernelpro"), "bench", "--out", settings.directory,
                        "--worker", std::to_string(i) + "/" + std::to_string(gpus.size()), "--gpu",
                        gpus[i]});
  }
  require(run_side_by_side(commands, quiet));
  // If a worker died, the report shows its tasks as unfinished.
  bool done = true;
  for (const TaskResult& result : read_results(settings)) {
    done &= result.state == RunState::kFinished || result.state == RunState::kBroken;
  }
  return done;
}

// True, with a message on stderr, when no task got beyond its start.
bool achieved_nothing(const std::vector<TaskResult>& results) {
  for (const TaskResult& result : results) {
    if (result.state == RunState::kFinished && !result.tried_nothing) return false;
  }
  std::fflush(stdout);
  std::fprintf(stderr,
               "kernelpro: the suite achieved nothing: no task got beyond its start\n  next: "
               "each run's own report (kernelpro report DIR/ARM/TASK) shows what failed; correct "
               "that and begin a new suite\n");
  return true;
}

int run_bench(const Options& options) {
  check_launcher(options);
  const SuiteSettings settings = read_settings(options);
  const bool json = options.flag("--json");
  const bool worker = options.has("--worker");
  if (!json && !worker) {
    std::printf("%s under %s in %s\n", how_many(settings.tasks.size(), "task").c_str(),
                how_many(settings.arms.size(), "arm").c_str(), settings.directory.c_str());
    std::fflush(stdout);
  }
  stop_on_signals();
  const bool slurm = wants_slurm(options);
  const auto gpus = read_gpus(options);
  if (gpus.size() > 1 && (slurm || worker)) {
    bad("--gpu names several GPUs, but " + std::string(slurm ? "Slurm" : "a worker") + " uses one",
        slurm ? "leave --gpu out: Slurm gives each job its own" : "name one");
  }
  const bool done = slurm             ? work_on_slurm(settings, options, json)
                    : gpus.size() > 1 ? work_on_gpus(settings, gpus, json)
                                      : work_here(settings, options, json);
  if (worker) return stop_requested() ? interrupted_status() : 0;
  const auto results = read_results(settings);
  require(write_suite_report(settings, results));
  if (json) {
    std::fputs(suite_json(settings, results).c_str(), stdout);
  } else {
    std::fputs(suite_summary(settings, results).c_str(), stdout);
    if (!done) {
      std::printf("\ncontinue with: kernelpro bench --out %s%s\n", settings.directory.c_str(),
                  slurm ? " --launcher slurm" : "");
    }
    std::printf("\nreport: %s\n", join(settings.directory, "report.md").c_str());
  }
  if (stop_requested() && !done) return interrupted_status();
  if (options.flag("--no-wait")) return 0;
  if (!done) return 1;
  return achieved_nothing(results) ? kNothingAchieved : 0;
}

}  // namespace

extern const Subcommand kBench{
    "bench", "Run a suite of tasks, compare arms (configurations), and report statistics.", rows(),
    run_bench};

}  // namespace kernelpro
