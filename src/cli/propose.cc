// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/json.h"
#include "cli/commands.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kProposeOptions[] = {
    {"RUN", "", "", "Run folder.", true},
    {"-n", "N", "4", "How many requests to write."},
    {"--json", "", "", "Print the folders as JSON."},
};

int run_propose(const Options& options) {
  const auto count = options.integer("-n");
  if (count < 1 || count > 1000) {
    throw Fatal(
        {ErrorKind::kBadInput, "the number of requests (-n) is out of range", "give 1 to 1000"});
  }
  const std::string run = options.text("RUN");
  const auto folders = require(propose(run, static_cast<int>(count)));
  if (options.flag("--json")) {
    std::printf("%s\n", dump_json(Json{{"requests", folders}}).c_str());
    return 0;
  }
  for (const std::string& folder : folders) std::printf("%s\n", folder.c_str());
  std::printf(
      "Read each prompt.md and put complete kernels into its reply/, then run: kernelpro measure "
      "%s\n",
      run.c_str());
  return 0;
}

}  // namespace

extern const Subcommand kPropose{"propose",
                                 "Write requests for kernels into a run's exchange folder.",
                                 kProposeOptions, run_propose};

}  // namespace kernelpro
