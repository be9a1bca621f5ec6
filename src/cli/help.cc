// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "cli/commands.h"
#include "cli/parse.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kHelpOptions[] = {
    {"COMMAND", "", "", "Command to describe.", false},
    {"--markdown", "", "", "Print docs/commands.md."},
};

int run_help(const Options& options) {
  if (options.flag("--markdown")) {
    std::fputs(help_markdown().c_str(), stdout);
    return 0;
  }
  const std::string name = options.text("COMMAND");
  if (name.empty()) {
    std::fputs(help_text().c_str(), stdout);
    return 0;
  }
  const Subcommand* subcommand = find_subcommand(name);
  if (subcommand == nullptr) {
    throw Fatal({ErrorKind::kBadInput, "there is no command \"" + name + "\"",
                 "kernelpro help lists the commands"});
  }
  std::fputs(help_text(*subcommand).c_str(), stdout);
  return 0;
}

}  // namespace

extern const Subcommand kHelp{"help", "Show how to use a command.", kHelpOptions, run_help};

}  // namespace kernelpro
