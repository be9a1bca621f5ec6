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
// Lines without their line ends.
std::vector<std::string> lines(std::string_view text);
std::string join_text(const std::vector<std::string>& parts, std::string_view separator);
std::string replace_all(std::string text, std::string_view from, std::string_view to);
bool contains(std::string_view text, std::string_view part);
// A C identifier: [A-Za-z_][A-Za-z0-9_]*.
bool is_identifier(std::string_view text);
// The first `max_bytes`, less the start of a UTF-8 character that the cut would split.
std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes);
// The first `max_bytes`, cut at a line end, with a note of how much was left out.
std::string clip(std::string_view text, std::size_t max_bytes);
// Bytes that are not valid UTF-8 (or are control characters other than \n and \t) become '?':
// output of candidates goes into JSON, HTML and terminals.
std::string printable(std::string_view text);

// "1.23 ms", "45.6 us": microseconds for people.
std::string human_us(double microseconds);
// "1.50 GB": powers of ten.
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);
// %.*g without locale.
std::string number(double value, int significant_digits = 4);

}  // namespace kernelpro
