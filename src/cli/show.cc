// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/files.h"
#include "cli/commands.h"
#include "report/report.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kShowOptions[] = {
    {"RUN", "", "", "Run folder (the run may still be active), or a run as text.", true},
    {"--json", "", "", "Print everything in the run as JSON."},
};

int run_show(const Options& options) {
  const std::string directory = options.text("RUN");
  const std::string text =
      require(options.flag("--json") ? json_report(directory) : text_report(directory));
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

extern const Subcommand kShow{"show", "Print a run's results.", kShowOptions, run_show};

}  // namespace kernelpro
