// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "measure/remote/resident.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kStationOptions[] = {
    {"--stdio", "SESSION", "", "Take orders from standard input; what --station runs over SSH."},
    {"--reside", "SESSION", "", "Be the process that keeps the session; what --stdio starts."},
};

int run_station(const Options& options) {
  if (options.has("--stdio") == options.has("--reside")) {
    throw Fatal({ErrorKind::kBadInput, "this command is the far end of a connection",
                 "measure here from another machine: kernelpro optimize TASK --station "
                 "ssh://USER@HOST"});
  }
  if (options.has("--stdio")) {
    require(relay(options.text("--stdio")));
  } else {
    require(reside(options.text("--reside")));
  }
  return 0;
}

}  // namespace

extern const Subcommand kStation{"station",
                                 "Take orders from a run on another machine (see --station).",
                                 kStationOptions, run_station};

}  // namespace kernelpro
