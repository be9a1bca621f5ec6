// SPDX-License-Identifier: Apache-2.0
// A subcommand is data plus a function; help, docs and parsing derive from the row. To add one,
// write its file and add one row to subcommands.cc.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct OptionSpec {
  // "--evaluations", "TASK" for a positional, or "--" for everything after a lone "--".
  std::string_view name;
  std::string_view value;         // "N", "DIR"; "" for a flag; "N..." may be given repeatedly
  std::string_view initial;       // default, "" = none
  std::string_view help;          // one sentence
  bool required = false;          // positionals only
  std::string_view choices = "";  // "a|b|c", "" = any
  // The same from a table elsewhere; null: `choices` holds.
  std::string (*choices_from)() = nullptr;
  // Sentences after `help`, from a table elsewhere; null: none.
  std::string (*help_from)() = nullptr;
};

// Parsed values by option name.
class Options {
 public:
  std::map<std::string, std::string, std::less<>> values;
  bool has(std::string_view name) const;  // given, or has a default
  std::string text(std::string_view name) const;
  // Throw Fatal, a usage error (exit status 2), when the value is not a number.
  double real(std::string_view name) const;
  long long integer(std::string_view name) const;
  // An integer from `least` to `most`.
  int small(std::string_view name, int least, int most) const;
  bool flag(std::string_view name) const;
  // The words after a lone "--".
  std::vector<std::string> rest;
};

struct Subcommand {
  std::string_view name;
  std::string_view summary;  // one line
  std::span<const OptionSpec> options;
  int (*run)(const Options& options);  // exit status
};

std::span<const Subcommand* const> subcommands();

}  // namespace kernelpro
