// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "run/proposers.h"
#include "run/store/store.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kReplayOptions[] = {
    {"RUN", "", "", "Run whose candidates to evaluate again: its folder, or the run as text.",
     true},
    {"--run", "DIR", "", "Folder for the new run; by default a new one under runs/."},
    {"--evaluations", "N", "100000", "Stop after N evaluated candidates."},
    {"--seconds", "S", "3600", "Stop after S seconds of run time."},
    {"--timeout", "S", "30", "Time limit for one call of a candidate, in seconds."},
    {"--json", "", "", "Print one JSON object per line."},
};

// Uses the task and the target stored in the recorded run.
int run_replay(const Options& options) {
  check_budgets(options);
  const std::string from = options.text("RUN");
  const auto store = require(Store::open(from, Store::Mode::kRead));
  const RunHeader header = require(store->header());
  RunSettings settings;
  settings.proposer = proposer_that(&ProposerRow::replays).name;
  settings.replay_from = from;
  settings.target = header.target;
  // What decides whether a result is right, and which is the best, is the recorded run's.
  if (const auto recorded = settings_from_json(header.settings_json)) {
    settings.policy = recorded->policy;
    settings.objective = recorded->objective;
  }
  settings.include_dirs = read_include_dirs(options);
  settings.max_evaluations = options.small("--evaluations", 1, kMostEvaluations);
  settings.max_seconds = options.real("--seconds");
  settings.near_ceiling = 1e9;  // never stop early: replay all candidates
  settings.timeout_s = options.real("--timeout");
  settings.directory =
      options.has("--run") ? options.text("--run") : new_run_directory(header.task, header.target);
  const bool json = options.flag("--json");
  refuse_unsound(header.task, settings, options);
  stop_on_signals();
  announce_run(settings, header.task, {}, json);
  const auto result =
      optimize(header.task, settings, make_display(display_kind(json, stdout), stdout));
  if (!result && !options.has("--run")) drop_run_directory(settings.directory);
  return finish_run(settings.directory, result, json);
}

}  // namespace

extern const Subcommand kReplay{"replay",
                                "Evaluate a recorded run's candidates again, in a new run.",
                                kReplayOptions, run_replay};

}  // namespace kernelpro
