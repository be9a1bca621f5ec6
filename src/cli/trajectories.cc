// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/files.h"
#include "cli/commands.h"
#include "run/store/run_text.h"
#include "run/store/store.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kTrajectoriesOptions[] = {
    {"RUN", "", "", "Run folder (the run may still be active), or a run as text.", true},
    {"--output", "FILE", "", "Where to write; standard output by default."},
    {"--written", "", "", "Only the candidates that a writer was asked for; not a whole run."},
};

int run_trajectories(const Options& options) {
  const auto store = require(Store::open(options.text("RUN"), Store::Mode::kRead));
  const std::string text = run_to_text(require(store->whole()), options.flag("--written"));
  if (options.has("--output")) {
    require(write_file(options.text("--output"), text));
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}

}  // namespace

extern const Subcommand kTrajectories{
    "trajectories", "Print a run as text: JSON lines, which other commands read like its folder.",
    kTrajectoriesOptions, run_trajectories};

}  // namespace kernelpro
