// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/files.h"
#include "cli/commands.h"
#include "report/report.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kShowOptions[] = {
    {"RUN", "", "", "Folder of the run, which may be going on, or a run as text.", true},
    {"--json", "", "", "Print everything that the run holds as JSON."},
};

int run_show(const Options& options) {
  const std::string directory = options.text("RUN");
  const std::string text =
      require(options.flag("--json") ? json_report(directory) : text_report(directory));
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

const Subcommand kShow{"show", "Print what a run has found.", kShowOptions, run_show};

}  // namespace kernelpro
