// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <cstdio>

#include "base/files.h"
#include "cli/commands.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kReportOptions[] = {
    {"RUN", "", "", "Run folder (the run may still be active), or a run as text.", true},
    {"--output", "FILE", "",
     "Where to write; by default report.html in the run folder, a.report.html beside a.jsonl."},
};

int run_report(const Options& options) {
  const std::string directory = options.text("RUN");
  const std::string path =
      options.has("--output") ? options.text("--output") : default_output(directory, "report.html");
  require(write_file(path, require(html_report(directory))));
  std::printf("%s\n", path.c_str());
  return 0;
}

}  // namespace

extern const Subcommand kReport{"report", "Write a run's HTML report.", kReportOptions, run_report};

}  // namespace kernelpro
