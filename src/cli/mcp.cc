// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/served.h"
#include "cli/tasks.h"
#include "serve/mcp/stdio.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kMcpOptions[] = {
    kServedTasks,   kServedRuns,   kServedTarget,          kServedGpu,
    kStationOption, kPythonOption, profile_option("full"), kServedTimeout,
    kServedRecord};

int run_mcp(const Options& options) {
  DeskSettings settings = read_desk_settings(options);
  settings.trusted = true;  // whoever starts this program can do all of it anyway
  if (::isatty(STDIN_FILENO) != 0) {
    std::fprintf(stderr,
                 "This is an MCP server on standard input and output, waiting for a client.\n  "
                 "next: let a coding agent start it (docs/mcp.md), or end it with Ctrl-C\n");
  }
  require(serve_stdio(settings));
  return 0;
}

}  // namespace

extern const Subcommand kMcp{"mcp",
                             "Serve tools to a coding agent over standard input and output (MCP).",
                             kMcpOptions, run_mcp};

}  // namespace kernelpro
