// SPDX-License-Identifier: Apache-2.0
// Helpers shared by the subcommands that run the loop.
#include <csignal>
#include <cstdio>

#include "base/files.h"
#include "base/stop.h"
#include "base/text.h"
#include "cli/commands.h"
#include "core/machine/ceiling_json.h"
#include "report/load.h"
#include "report/report.h"
#include "report/view.h"
#include "write/calls.h"

namespace kernelpro {

namespace {

volatile std::sig_atomic_t stopped_by_signal = 0;

extern "C" void on_signal(int signal) {
  stopped_by_signal = signal;
  request_stop();
  std::signal(signal, SIG_DFL);
}

const char* end_name(RunEnd end) {
  switch (end) {
    case RunEnd::kDone:
      return "done";
    case RunEnd::kInterrupted:
      return "interrupted";
    case RunEnd::kNothing:
      return "nothing";
  }
  return "";
}

int exit_status(RunEnd end) {
  switch (end) {
    case RunEnd::kDone:
      return 0;
    case RunEnd::kInterrupted:
      return interrupted_status();
    case RunEnd::kNothing:
      return kNothingAchieved;
  }
  return 0;
}

void print_json(const std::string& directory, const std::string& page, const RunResult& result,
                const RunView& view) {
  Json json = {{"event", "result"},
               {"run", directory},
               {"report", page},
               {"best", result.best},
               {"best_us", result.best_us},
               {"speedup", result.speedup},
               {"speedup_low", result.speedup_low},
               {"speedup_high", result.speedup_high},
               {"evaluations", result.evaluations},
               {"stopped_by", result.stopped_by},
               {"end", end_name(result.end)},
               {"next", result.next},
               {"models", calls_text(view.calls)},
               {"own_ms_per_evaluation", result.own_ms_per_evaluation}};
  put_fraction(result.fraction_of_ceiling, &json);
  if (const auto load = load_json(tell(view).load); !load.empty()) json["load"] = load;
  if (view.confirmation && !view.confirmation->held_out.empty()) {
    json["held_out"] = parse_json(held_out_to_json(view.confirmation->held_out)).value_or(Json());
  }
  std::printf("%s\n", dump_json(json).c_str());
}

}  // namespace

void check_budgets(const Options& options) {
  const auto none = [&](const char* name, double least, const char* what) {
    if (!options.has(name) || options.real(name) >= least) return;
    throw Fatal(
        {ErrorKind::kBadInput, std::string(name) + " " + options.text(name) + " leaves no " + what,
         std::string("give ") + (least < 1 ? "more than 0" : "1 or more") + ", or leave it out"});
  };
  none("--evaluations", 1, "candidate to evaluate");
  none("--seconds", 1e-9, "time");
}

double read_timeout(const Options& options) {
  const double seconds = options.real("--timeout");
  if (seconds > 0) return seconds;
  throw Fatal({ErrorKind::kBadInput, "--timeout " + options.text("--timeout") + " ends every call",
               "give the time limit of one call in seconds, or leave it out"});
}

void refuse_gpu_on_cpu(const Options& options, TargetKind target) {
  if (target != TargetKind::kCpu || !options.has("--gpu")) return;
  throw Fatal({ErrorKind::kBadInput, "--gpu names a GPU, but this run is on the CPU",
               "leave --gpu out, or choose --target cuda"});
}

void read_budgets(const Options& options, RunSettings* settings) {
  check_budgets(options);
  if (options.has("--evaluations")) {
    settings->max_evaluations = options.small("--evaluations", 1, kMostEvaluations);
  }
  if (options.has("--seconds")) settings->max_seconds = options.real("--seconds");
  if (options.has("--near-ceiling")) settings->near_ceiling = options.real("--near-ceiling");
  settings->plateau = options.small("--plateau", 0, kMostEvaluations);
}

std::string default_output(const std::string& run, const std::string& name) {
  if (is_dir(run)) return join(run, name);
  constexpr std::string_view kText = ".jsonl";
  return (run.ends_with(kText) ? run.substr(0, run.size() - kText.size()) : run) + "." + name;
}

void stop_on_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

void refuse_unsound(const Task& task, const RunSettings& settings, const Options& options) {
  const auto sound = check_run(task, settings);
  if (!sound && !options.has("--run")) drop_run_directory(settings.directory);
  require(sound);
}

void announce_run(const RunSettings& settings, const Task& task,
                  const std::vector<std::string>& notes, bool json) {
  const std::string target(target_name(settings.target));
  if (json) {
    const Json line = {{"event", "started"}, {"run", settings.directory},     {"task", task.name},
                       {"target", target},   {"stations", settings.stations}, {"notes", notes}};
    std::printf("%s\n", dump_json(line).c_str());
  } else {
    const std::string there =
        settings.stations.empty() ? "" : " at " + join_text(settings.stations, ", ");
    std::printf("%s on the %s target%s, run folder %s\n", task.name.c_str(), target.c_str(),
                there.c_str(), settings.directory.c_str());
    for (const std::string& note : notes) std::printf("note: %s\n", note.c_str());
  }
  std::fflush(stdout);
}

int interrupted_status() {
  // No signal seen: a worker was interrupted before the signal reached this process. Use SIGINT.
  return 128 + (stopped_by_signal != 0 ? static_cast<int>(stopped_by_signal) : SIGINT);
}

int finish_run(const std::string& directory, const Result<RunResult>& result, bool json) {
  if (!result) throw Fatal(result.error());
  const std::string page = join(directory, "report.html");
  const std::string html = require(html_report(directory));
  require(write_file(page, html));
  const RunView view = require(load_run_view(directory));
  if (json) {
    print_json(directory, page, *result, view);
    return exit_status(result->end);
  }
  const Story story = tell(view);
  std::printf("\n%s\n%s\n", verdict(view, story).c_str(), credit(story).c_str());
  if (view.confirmation) std::printf("%s", held_out_text(view.confirmation->held_out).c_str());
  if (const std::string load = load_text(story.load); !load.empty()) {
    std::printf("%s\n", load.c_str());
  }
  std::printf("stopped after %s: %s\n", how_many(result->evaluations, "evaluation").c_str(),
              result->stopped_by.c_str());
  if (view.header.target == TargetKind::kCuda) {
    const std::string use = gpu_use_text(result->gpu_use);
    if (!use.empty()) std::printf("GPU: %s\n", use.c_str());
  }
  if (!view.calls.empty()) std::printf("%s\n", calls_text(view.calls).c_str());
  if (result->end == RunEnd::kInterrupted) std::printf("continue with: %s\n", result->next.c_str());
  std::printf("report: %s\n", page.c_str());
  if (result->end == RunEnd::kNothing) {
    std::fflush(stdout);
    const bool before = result->best != 0 && view.confirmation;
    std::fprintf(stderr, "kernelpro: %s: %s\n  next: %s\n",
                 before ? "nothing new was measured" : "the run achieved nothing",
                 result->stopped_by.c_str(), result->next.c_str());
  }
  return exit_status(result->end);
}

}  // namespace kernelpro
