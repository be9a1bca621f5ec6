// SPDX-License-Identifier: Apache-2.0
// Profilers' CSV output: a table between other lines (profiler progress, program output), numbers
// in the locale's format, units in words.
// Untrusted input: every function is total.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

// Reads one record from `*text` and advances it; quoted fields may span lines. An unterminated
// quoted field ends with its line. False at the end.
bool next_record(std::string_view* text, std::vector<std::string>* fields);

// The decimal separator.
enum class DecimalSign { kPoint, kComma };
// The majority among numbers that can be read only one way ("1.234,5"); kPoint if there are none.
class DecimalVote {
 public:
  void look(std::string_view number);
  DecimalSign decide() const { return comma_ > point_ ? DecimalSign::kComma : DecimalSign::kPoint; }

 private:
  int comma_ = 0;
  int point_ = 0;
};
// nullopt: not a finite number ("n/a", "nan", "inf", text). Thousands separators are skipped.
std::optional<double> read_number(std::string_view text, DecimalSign sign);

// A unit: `scale` times the base unit of its dimension. Counts (instructions, sectors, threads ...)
// have no dimension.
struct Unit {
  double scale = 1;
  std::string dimension;  // "s", "byte", "%", "byte/s", "/s", ""
};
// "usecond", "Kbyte", "Gbyte/second", "inst/cycle", "cycle/nsecond", "us", "%", "Ghz"; nullopt:
// an unknown word.
std::optional<Unit> read_unit(std::string_view text);
// The factor that converts from `from` to `to`; nullopt when they are incompatible. An empty `from`
// means the base unit.
std::optional<double> convert_unit(std::string_view from, std::string_view to);

}  // namespace kernelpro
