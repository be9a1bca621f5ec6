// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "cli/subcommand.h"

namespace kernelpro {

namespace {

[[noreturn]] void not_a_number(std::string_view name, const std::string& text, const char* what) {
  throw Fatal({ErrorKind::kBadInput,
               std::string(name) + " must be " + what + ", not \"" + text + "\"",
               "write, for example, " + std::string(name) + " 10"});
}

}  // namespace

bool Options::has(std::string_view name) const { return values.find(name) != values.end(); }

std::string Options::text(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

double Options::real(std::string_view name) const {
  const std::string value = text(name);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !std::isfinite(number) || number < 0) {
    not_a_number(name, value, "a number of at least 0");
  }
  return number;
}

long long Options::integer(std::string_view name) const {
  const std::string value = text(name);
  long long number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0) {
    not_a_number(name, value, "an integer of at least 0");
  }
  return number;
}

int Options::small(std::string_view name, int least, int most) const {
  const long long value = integer(name);
  if (value < least || value > most) {
    throw Fatal({ErrorKind::kBadInput,
                 std::string(name) + " " + std::to_string(value) + " is out of range",
                 "give " + std::to_string(least) + " to " + std::to_string(most)});
  }
  return static_cast<int>(value);
}

bool Options::flag(std::string_view name) const { return text(name) == "1"; }

}  // namespace kernelpro
