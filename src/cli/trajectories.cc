// SPDX-License-Identifier: Apache-2.0
#include "report/trajectories.h"

#include <cstdio>

#include "base/files.h"
#include "cli/commands.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kTrajectoriesOptions[] = {
    {"RUN", "", "", "Run folder; the run may still be active.", true},
    {"--output", "FILE", "", "Where to write; standard output by default."},
    {"--written", "", "", "Only candidates that a writer was asked to write."},
};

int run_trajectories(const Options& options) {
  const std::string text = require(trajectories(options.text("RUN"), options.flag("--written")));
  if (options.has("--output")) {
    require(write_file(options.text("--output"), text));
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}

}  // namespace

const Subcommand kTrajectories{
    "trajectories", "Print a run's prompts, replies, measurements and diagnoses as JSON lines.",
    kTrajectoriesOptions, run_trajectories};

}  // namespace kernelpro
