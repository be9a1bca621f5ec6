// SPDX-License-Identifier: Apache-2.0
// Parses a command line into Options by a subcommand's rows. Only parse.cc uses CLI11.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/subcommand.h"

namespace kernelpro {

// `arguments`: those after the subcommand's name. An option or positional whose value ends in "..."
// may be repeated; its values are joined by newlines. Fails with kBadInput on anything that the
// rows do not allow.
Result<Options> parse_options(const Subcommand& subcommand,
                              const std::vector<std::string>& arguments);

// Help, generated from the rows.
std::string usage_line(const Subcommand& subcommand);
std::string help_text();
std::string help_text(const Subcommand& subcommand);
std::string help_markdown();

const Subcommand* find_subcommand(std::string_view name);

// Runs the whole program; returns the exit status. `version`: what --version says.
int run_kernelpro(int argc, char** argv, const std::string& version);

}  // namespace kernelpro
