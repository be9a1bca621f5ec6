// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/served.h"
#include "cli/tasks.h"
#include "serve/stdio.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kOptions[] = {kServedTasks,   kServedRuns,   kServedTarget,
                                   kServedGpu,     kPythonOption, profile_option("triage"),
                                   kServedTimeout, kServedRecord};

int run_mcp(const Options& options) {
  require(serve_stdio(read_desk_settings(options)));
  return 0;
}

}  // namespace

const Subcommand kMcp{"mcp", "Tools for a coding agent, over standard input and output (MCP).",
                      kOptions, run_mcp};

}  // namespace kernelpro
