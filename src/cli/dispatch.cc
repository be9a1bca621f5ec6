// SPDX-License-Identifier: Apache-2.0
// Finds the subcommand, parses its options, runs it, and turns errors into exit codes.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/parse.h"

namespace kernelpro {

namespace {

int report(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "kernelpro: %s\n", printable(error.text()).c_str());
  return static_cast<int>(error.kind);
}

int dispatch(const std::vector<std::string>& arguments, const std::string& version) {
  if (arguments.empty()) {
    std::fputs(help_text().c_str(), stderr);
    return static_cast<int>(ErrorKind::kBadInput);
  }
  std::string name = arguments[0];
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (name == "--version" || name == "-V") {
    std::printf("kernelpro %s\n", version.c_str());
    return 0;
  }
  if (name == "--help" || name == "-h") name = "help";
  const Subcommand* subcommand = find_subcommand(name);
  if (subcommand == nullptr) {
    return report({ErrorKind::kBadInput, "there is no command \"" + name + "\"",
                   "kernelpro help lists the commands"});
  }
  for (const std::string& argument : rest) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h") {
      std::fputs(help_text(*subcommand).c_str(), stdout);
      return 0;
    }
  }
  const Result<Options> options = parse_options(*subcommand, rest);
  if (!options) return report(options.error());
  return subcommand->run(*options);
}

}  // namespace

int run_kernelpro(int argc, char** argv, const std::string& version) {
  try {
    return dispatch(std::vector<std::string>(argv + 1, argv + argc), version);
  } catch (const Fatal& fatal) {
    return report(fatal.error());
  } catch (const std::exception& error) {
    return report({ErrorKind::kInternal, std::string("internal error: ") + error.what(),
                   "this is a bug in KernelPro: report it with the command that you ran"});
  }
}

}  // namespace kernelpro
