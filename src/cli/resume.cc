// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "run/store/settings.h"
#include "run/store/store.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kResumeOptions[] = {
    {"RUN", "", "", "Run folder.", true},
    {"--evaluations", "N", "", "New limit on evaluated candidates, including those so far."},
    {"--seconds", "S", "", "New limit on run time in seconds, including the time so far."},
    {"--near-ceiling", "F", "", "New fraction of the ceiling at which to stop."},
    {"--plateau", "N", "", "New limit on evaluations without improvement; 0 means never."},
    {"--max-tokens", "N", "",
     "New limit on model tokens, including those so far; 0 means no limit."},
    {"--max-usd", "X", "",
     "New limit on model cost in US dollars, including the cost so far; 0 means no limit."},
    {"--max-calls", "N", "", "New limit on requests to models; 0 means no limit."},
    {"--json", "", "", "Print one JSON object per line."},
};

// The run's settings with the given budgets; nullopt when none was given.
std::optional<RunSettings> budgets(const Options& options) {
  const bool any = options.has("--evaluations") || options.has("--seconds") ||
                   options.has("--near-ceiling") || options.has("--plateau") ||
                   options.has("--max-tokens") || options.has("--max-usd") ||
                   options.has("--max-calls");
  if (!any) return std::nullopt;
  const auto store = require(Store::open(options.text("RUN"), Store::Mode::kRead));
  auto settings = settings_from_json(require(store->header()).settings_json);
  if (!settings) settings = RunSettings();
  if (options.has("--evaluations")) {
    settings->max_evaluations = options.small("--evaluations", 1, kMostEvaluations);
  }
  if (options.has("--seconds")) settings->max_seconds = options.real("--seconds");
  if (options.has("--near-ceiling")) settings->near_ceiling = options.real("--near-ceiling");
  if (options.has("--plateau")) settings->plateau = options.small("--plateau", 0, kMostEvaluations);
  read_model_budgets(options, &settings->roles);
  return settings;
}

int run_resume(const Options& options) {
  check_budgets(options);
  const std::string directory = options.text("RUN");
  const std::optional<RunSettings> changed = budgets(options);
  const bool json = options.flag("--json");
  stop_on_signals();
  const auto result = resume(directory, changed ? &*changed : nullptr,
                             make_display(display_kind(json, stdout), stdout));
  return finish_run(directory, result, json);
}

}  // namespace

extern const Subcommand kResume{"resume", "Continue a run where it stopped.", kResumeOptions,
                                run_resume};

}  // namespace kernelpro
