// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "run/store/settings.h"
#include "run/store/store.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kResumeOptions[] = {
    {"RUN", "", "", "Folder of the run.", true},
    {"--evaluations", "N", "", "New budget of evaluated candidates, those so far included."},
    {"--seconds", "S", "", "New budget of run time, that so far included."},
    {"--near-ceiling", "F", "", "New share of the ceiling at which to stop."},
    {"--plateau", "N", "", "New number of evaluations without a better one; 0 is never."},
    {"--max-tokens", "N", "",
     "New budget of models' tokens, those so far included; 0 is no limit."},
    {"--max-usd", "X", "", "New budget of models' cost, that so far included; 0 is no limit."},
    {"--max-calls", "N", "", "New budget of requests to models; 0 is no limit."},
    {"--json", "", "", "Print one JSON object a line."},
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
    settings->max_evaluations = static_cast<int>(options.integer("--evaluations"));
  }
  if (options.has("--seconds")) settings->max_seconds = options.real("--seconds");
  if (options.has("--near-ceiling")) settings->near_ceiling = options.real("--near-ceiling");
  if (options.has("--plateau")) settings->plateau = static_cast<int>(options.integer("--plateau"));
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

const Subcommand kResume{"resume", "Go on with a run where it was left.", kResumeOptions,
                         run_resume};

}  // namespace kernelpro
