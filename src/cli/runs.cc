// SPDX-License-Identifier: Apache-2.0
// What the subcommands that run the loop share.
#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "core/json.h"
#include "evaluate/evaluator.h"
#include "propose/calls.h"
#include "report/report.h"
#include "report/view.h"

namespace kernelpro {

namespace {

extern "C" void on_signal(int signal) {
  request_stop();
  std::signal(signal, SIG_DFL);
}

std::string safe_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    result += plain ? c : '_';
  }
  return result.empty() ? "task" : result;
}

void print_json(const std::string& directory, const std::string& page, const RunResult& result,
                const RunView& view) {
  const Json json = {{"event", "result"},
                     {"run", directory},
                     {"report", page},
                     {"best", result.best},
                     {"best_us", result.best_us},
                     {"speedup", result.speedup},
                     {"speedup_low", result.speedup_low},
                     {"speedup_high", result.speedup_high},
                     {"fraction_of_ceiling", result.fraction_of_ceiling},
                     {"evaluations", result.evaluations},
                     {"stopped_by", result.stopped_by},
                     {"models", calls_text(view.calls)},
                     {"own_ms_per_evaluation", result.own_ms_per_evaluation}};
  std::printf("%s\n", dump_json(json).c_str());
}

}  // namespace

TargetKind choose_target(const Task& task, const std::string& name) {
  if (const auto target = target_from_name(name)) return *target;
  if (task.kernel_cu.empty() || cases_for(task, TargetKind::kCuda).empty()) {
    return TargetKind::kCpu;
  }
  return describe_cuda_machine() ? TargetKind::kCuda : TargetKind::kCpu;
}

std::string new_run_directory(const Task& task, TargetKind target) {
  std::string stamp = utc_now();
  std::erase_if(stamp, [](char c) { return c == ':' || c == '-'; });
  const std::string base =
      join("runs", safe_name(task.name) + "-" + std::string(target_name(target)) + "-" + stamp);
  std::string directory = base;
  for (int i = 2; exists(directory); ++i) directory = base + "-" + std::to_string(i);
  return directory;
}

void read_budgets(const Options& options, RunSettings* settings) {
  settings->max_evaluations = static_cast<int>(options.integer("--evaluations"));
  settings->max_seconds = options.real("--seconds");
  settings->near_ceiling = options.real("--near-ceiling");
  settings->plateau = static_cast<int>(options.integer("--plateau"));
}

void stop_on_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

int finish_run(const std::string& directory, const Result<RunResult>& result, bool json) {
  if (!result) throw Fatal(result.error());
  const std::string page = join(directory, "report.html");
  const std::string html = require(html_report(directory));
  require(write_file(page, html));
  const RunView view = require(load_run_view(directory));
  if (json) {
    print_json(directory, page, *result, view);
    return 0;
  }
  const Story story = tell(view);
  std::printf("\n%s\n%s\n", verdict(view, story).c_str(), credit(story).c_str());
  std::printf("stopped after %d evaluations: %s\n", result->evaluations,
              result->stopped_by.c_str());
  if (!view.calls.empty()) std::printf("%s\n", calls_text(view.calls).c_str());
  if (result->stopped_by == "interrupted") {
    std::printf("go on with: kernelpro resume %s\n", directory.c_str());
  }
  std::printf("report: %s\n", page.c_str());
  return 0;
}

}  // namespace kernelpro
