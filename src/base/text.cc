// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace kernelpro {

std::string_view trim(std::string_view text) {
  const char* const white = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(white);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(white) - begin + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < text.size();) {
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i]))) ++i;
    const std::size_t begin = i;
    while (i < text.size() && !std::isspace(static_cast<unsigned char>(text[i]))) ++i;
    if (i > begin) result.emplace_back(text.substr(begin, i - begin));
  }
  return result;
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> result;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    result.emplace_back(line);
    begin = end + 1;
  }
  return result;
}

std::string first_line(std::string_view text) {
  const std::vector<std::string> all = lines(text.substr(0, text.find('\n')));
  return all.empty() ? "" : all.front();
}

std::string join_text(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += separator;
    result += parts[i];
  }
  return result;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  std::size_t at = from.empty() ? std::string::npos : text.find(from);
  if (at == std::string::npos) return text;
  std::string result;  // not in place, which would take quadratic time
  std::size_t begin = 0;
  for (; at != std::string::npos; at = text.find(from, begin)) {
    result.append(text, begin, at - begin);
    result += to;
    begin = at + from.size();
  }
  return result.append(text, begin);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_identifier(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), in_identifier);
}

bool in_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool parse_hex(std::string_view text, unsigned long long* value) {
  unsigned long long number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, 16);
  if (error != std::errc() || end != last) return false;
  *value = number;
  return true;
}

std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  const auto continues = [&](std::size_t i) { return (text[i] & 0xc0) == 0x80; };
  std::size_t end = max_bytes;
  while (end > 0 && max_bytes - end < 3 && continues(end)) --end;
  return text.substr(0, continues(end) ? max_bytes : end);
}

std::string clip(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  std::string_view head = utf8_prefix(text, max_bytes);
  const std::size_t line_end = head.rfind('\n');
  if (line_end != std::string_view::npos && line_end > max_bytes / 2)
    head = head.substr(0, line_end);
  return std::string(head) + "\n... (" + std::to_string(text.size() - head.size()) + " more bytes)";
}

namespace {
// Length of the valid UTF-8 sequence at the start of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t n = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (n == 0 || n > text.size()) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (n == 3 && ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0))) return 0;
  if (n == 4 && ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90))) return 0;
  return n;
}

// Whether a whole UTF-8 character commands a terminal rather than being shown: a control character
// other than \n and \t, of C1 too (U+0080 to U+009F), or one that turns the direction of writing
// (U+202A to U+202E, U+2066 to U+2069).
bool commands(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  switch (character.size()) {
    case 1:
      return (byte(0) < 0x20 && byte(0) != '\n' && byte(0) != '\t') || byte(0) == 0x7f;
    case 2:
      return byte(0) == 0xc2 && byte(1) < 0xa0;
    case 3:
      return byte(0) == 0xe2 && ((byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
                                 (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9));
    default:
      return false;
  }
}
}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(text.substr(i));
    const std::string_view character = text.substr(i, std::max<std::size_t>(n, 1));
    if (n == 0 || commands(character)) {
      result += '?';
    } else {
      result += character;
    }
    i += character.size();
  }
  return result;
}

std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

std::string fenced(std::string_view text, std::string_view language) {
  std::size_t longest = 2;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  std::string block = fence + std::string(language) + "\n" + std::string(text);
  if (!text.ends_with('\n')) block += '\n';
  return block + fence + "\n";
}

std::string number(double value, int significant_digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*g", significant_digits, value);
  return buffer;
}

namespace {
std::string scaled(double value, const char* const* units, int count, double step) {
  int i = 0;
  while (i + 1 < count && std::fabs(value) >= step) {
    value /= step;
    ++i;
  }
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f %s",
                std::fabs(value) < 10    ? 2
                : std::fabs(value) < 100 ? 1
                                         : 0,
                value, units[i]);
  return buffer;
}
}  // namespace

std::string small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

std::string human_us(double microseconds) {
  static const char* const units[] = {"us", "ms", "s"};
  return scaled(microseconds, units, 3, 1000.0);
}

std::string how_many(std::int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string human_bytes(double bytes) {
  static const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  return scaled(bytes, units, 5, 1000.0);
}

std::string human_seconds(double seconds) {
  char buffer[64];
  if (seconds < 60) {
    std::snprintf(buffer, sizeof buffer, "%.1f s", seconds);
  } else if (seconds < 3600) {
    std::snprintf(buffer, sizeof buffer, "%d min %02d s", static_cast<int>(seconds) / 60,
                  static_cast<int>(seconds) % 60);
  } else {
    std::snprintf(buffer, sizeof buffer, "%d h %02d min", static_cast<int>(seconds) / 3600,
                  static_cast<int>(seconds) / 60 % 60);
  }
  return buffer;
}

}  // namespace kernelpro
