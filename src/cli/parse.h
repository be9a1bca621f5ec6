// SPDX-License-Identifier: Apache-2.0
// Command line to Options by a subcommand's rows. parse.cc is the only file that knows CLI11.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/subcommand.h"

namespace kernelpro {

// `arguments`: after the subcommand's name. An option or positional whose value ends in "..." may
// be given several times; its values are joined by line ends. kBadInput for anything that the rows
// do not allow.
Result<Options> parse_options(const Subcommand& subcommand,
                              const std::vector<std::string>& arguments);

// Help, from the rows.
std::string usage_line(const Subcommand& subcommand);
std::string help_text();
std::string help_text(const Subcommand& subcommand);
std::string help_markdown();

const Subcommand* find_subcommand(std::string_view name);

// The whole program; the exit status.
int run_kernelpro(int argc, char** argv);

}  // namespace kernelpro
