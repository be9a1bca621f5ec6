// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/display.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kMeasureOptions[] = {
    {"RUN", "", "", "Run folder.", true},
    {"--no-confirm", "", "",
     "Leave the confirmation of the best in fresh processes to a later call without this."},
    {"--json", "", "", "Print one JSON object per line."},
};

int run_measure(const Options& options) {
  const std::string run = options.text("RUN");
  const bool json = options.flag("--json");
  stop_on_signals();
  const auto result =
      measure(run, make_display(display_kind(json, stdout), stdout), !options.flag("--no-confirm"));
  return finish_run(run, result, json);
}

}  // namespace

extern const Subcommand kMeasure{"measure", "Evaluate the replies in a run's exchange folder.",
                                 kMeasureOptions, run_measure};

}  // namespace kernelpro
