// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "task/loader.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kOptions[] = {
    {"TASK", "", "", "Folder with the task's task.toml.", true},
    {"--target", "TARGET", "auto", "Where candidates run.", false, "auto|cpu|cuda"},
    {"--run", "DIR", "", "Folder of the run; by default a new one under runs/."},
    {"--proposer", "NAME", "tuner", "Who writes candidates.", false, "tuner|exchange|replay"},
    {"--from", "RUN", "", "With --proposer replay: the run whose candidates are tried again."},
    {"--evaluations", "N", "60", "Stop after so many evaluated candidates."},
    {"--seconds", "S", "600", "Stop after so much run time."},
    {"--near-ceiling", "F", "0.95", "Stop when the best reaches this share of the ceiling."},
    {"--plateau", "N", "0", "Stop after so many evaluations without a better one; 0 is never."},
    {"--timeout", "S", "30", "Longest time for one call of a candidate."},
    {"--seed", "N", "1", "Inputs and the search's choices are drawn from it."},
    {"--exchange-wait", "S", "3600", "With --proposer exchange: how long to wait for a reply."},
    {"--json", "", "", "Print one JSON object a line."},
};

int run_optimize(const Options& options) {
  const Task task = require(load_task(options.text("TASK")));
  RunSettings settings;
  settings.proposer = options.text("--proposer");
  settings.replay_from = options.text("--from");
  if (settings.proposer == "replay" && settings.replay_from.empty()) {
    throw Fatal({ErrorKind::kBadInput, "--proposer replay needs a run to replay",
                 "name it with --from RUN"});
  }
  read_budgets(options, &settings);
  settings.timeout_s = options.real("--timeout");
  settings.seed = static_cast<std::uint64_t>(options.integer("--seed"));
  settings.exchange_wait_s = options.real("--exchange-wait");
  settings.target = choose_target(task, options.text("--target"));
  settings.directory =
      options.has("--run") ? options.text("--run") : new_run_directory(task, settings.target);
  const bool json = options.flag("--json");
  if (!json) {
    std::printf("%s on the %s target, run folder %s\n", task.name.c_str(),
                std::string(target_name(settings.target)).c_str(), settings.directory.c_str());
    std::fflush(stdout);
  }
  stop_on_signals();
  const auto result = optimize(task, settings, make_display(display_kind(json, stdout), stdout));
  return finish_run(settings.directory, result, json);
}

}  // namespace

const Subcommand kOptimize{"optimize", "Search for a faster, verified kernel for a task.", kOptions,
                           run_optimize};

}  // namespace kernelpro
