// SPDX-License-Identifier: Apache-2.0
// What profilers print as comma-separated values: a table between lines of other things (progress
// of the profiler, output of the program), numbers as the locale wrote them, units in words.
// Untrusted input: every function is total.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

// One record from `*text`, which may go over several lines when a quoted field does; advances
// `*text`. A quoted field that does not end ends with its line. False at the end.
bool next_record(std::string_view* text, std::vector<std::string>* fields);

// Which sign begins the fraction of a number.
enum class DecimalSign { kPoint, kComma };
// What most of the numbers tell that can only be read one way ("1.234,5"); kPoint when none does.
class DecimalVote {
 public:
  void look(std::string_view number);
  DecimalSign decide() const { return comma_ > point_ ? DecimalSign::kComma : DecimalSign::kPoint; }

 private:
  int comma_ = 0;
  int point_ = 0;
};
// nullopt: no finite number ("n/a", "nan", "inf", a text). Thousands separators are left out.
std::optional<double> read_number(std::string_view text, DecimalSign sign);

// What a unit is made of: `scale` times the base unit of its dimension. Things that are counted
// (instructions, sectors, threads ...) have no dimension.
struct Unit {
  double scale = 1;
  std::string dimension;  // "s", "byte", "%", "byte/s", "/s", ""
};
// "usecond", "Kbyte", "Gbyte/second", "inst/cycle", "cycle/nsecond", "us", "%", "Ghz"; nullopt: a
// word that is not known.
std::optional<Unit> read_unit(std::string_view text);
// The factor that turns a number in `from` into one in `to`; nullopt when they do not fit. An empty
// `from` is taken for the base unit.
std::optional<double> convert_unit(std::string_view from, std::string_view to);

}  // namespace kernelpro
