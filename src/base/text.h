// SPDX-License-Identifier: Apache-2.0
// Small text helpers. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
// Words between runs of white space.
std::vector<std::string> words(std::string_view text);
// Lines without line endings.
std::vector<std::string> lines(std::string_view text);
// The first of them; "" when there are none.
std::string first_line(std::string_view text);
std::string join_text(const std::vector<std::string>& parts, std::string_view separator);
std::string replace_all(std::string text, std::string_view from, std::string_view to);
bool contains(std::string_view text, std::string_view part);
// A C identifier: [A-Za-z_][A-Za-z0-9_]*.
bool is_identifier(std::string_view text);
// [A-Za-z0-9_]
bool in_identifier(char c);
// Hexadecimal digits and nothing else (no sign, no 0x). False: they are not, or the number has more
// than 64 bits; `value` is left alone.
bool parse_hex(std::string_view text, unsigned long long* value);
// At most `max_bytes` from the start, without splitting a UTF-8 character.
std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes);
// The first `max_bytes`, cut at a line end, with a note of how much was left out.
std::string clip(std::string_view text, std::size_t max_bytes);

// Text from outside (candidates' and tasks' output, compilers' logs, names in a profile) goes
// through one of these wherever it is shown; HTML has `escape` (report/html.h) as well.

// For terminals, and whatever has no rule below: replaces by '?' bytes that are not valid UTF-8,
// control characters other than \n and \t, and characters that turn the direction of writing.
std::string printable(std::string_view text);
// As `printable`, with spaces for line ends and tabs: nothing can begin a line.
std::string one_line(std::string_view text);
// For Markdown: a block whose fence is longer than any run of backticks in the text, so that the
// text cannot end it. `language`: "cpp", "" ... The text itself is unchanged: a source stays whole.
std::string fenced(std::string_view text, std::string_view language = "");

// A to Z as a to z, whatever the locale; other bytes as they are.
std::string small_letters(std::string_view text);

// "1.23 ms", "45.6 us": microseconds in a readable unit.
std::string human_us(double microseconds);
// "1 kernel", "3 kernels".
std::string how_many(std::int64_t count, std::string_view noun);
// "1.50 GB": decimal units.
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);
// %.*g, independent of the locale.
std::string number(double value, int significant_digits = 4);

// The names of a table's rows: "a|b|c".
template <class Rows>
std::string names_of(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) text += (text.empty() ? "" : "|") + std::string(row.name);
  return text;
}

}  // namespace kernelpro
