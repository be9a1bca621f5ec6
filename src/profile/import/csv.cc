// SPDX-License-Identifier: Apache-2.0
#include "profile/import/csv.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace kernelpro {

namespace {

// A longer quoted field was never closed.
constexpr std::size_t kLongestQuoted = 64 << 10;

// The closing quote of the quoted field that begins at `begin` (after its opening quote), or npos.
std::size_t closing_quote(std::string_view text, std::size_t begin) {
  const std::size_t limit = std::min(text.size(), begin + kLongestQuoted);
  for (std::size_t i = begin; i < limit; ++i) {
    if (text[i] != '"') continue;
    if (i + 1 < text.size() && text[i + 1] == '"') {
      ++i;
      continue;
    }
    return i;
  }
  return std::string_view::npos;
}

std::size_t line_end(std::string_view text, std::size_t from) {
  const std::size_t end = text.find('\n', from);
  return end == std::string_view::npos ? text.size() : end;
}

// The next comma before `end`, or `end`. Stops there: a file may have no comma at all.
std::size_t comma_or(std::size_t end, std::string_view text, std::size_t from) {
  return from + std::min(text.substr(from, end - from).find(','), end - from);
}

std::string without_return(std::string_view text) {
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

bool next_record(std::string_view* text, std::vector<std::string>* fields) {
  fields->clear();
  if (text->empty()) return false;
  std::size_t at = 0;
  std::size_t line = line_end(*text, 0);
  for (;;) {
    if (at < text->size() && (*text)[at] == '"') {
      std::size_t close = closing_quote(*text, at + 1);
      if (close == std::string_view::npos) close = line;
      if (close > line) line = line_end(*text, close);
      fields->push_back(
          replace_all(without_return(text->substr(at + 1, close - at - 1)), "\"\"", "\""));
      // Text between the quote and the next comma belongs to no field.
      at = comma_or(line, *text, close);
    } else {
      const std::size_t end = comma_or(line, *text, at);
      fields->push_back(without_return(text->substr(at, end - at)));
      at = end;
    }
    if (at >= text->size() || (*text)[at] == '\n') {
      text->remove_prefix(std::min(text->size(), at + 1));
      return true;
    }
    ++at;  // the comma
  }
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Spaces of any width and apostrophes can only separate thousands.
std::string bare(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' || text[i] == '\'') continue;
    if (text.substr(i, 2) == "\xc2\xa0") {
      ++i;
    } else if (text.substr(i, 3) == "\xe2\x80\xaf" || text.substr(i, 3) == "\xe2\x80\x99") {
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

// Digits in groups of three after the first group, separated by `separator`.
bool is_grouped(std::string_view digits, char separator) {
  std::size_t group = digits.find(separator);
  if (group == std::string_view::npos || group == 0 || group > 3) return false;
  while (group < digits.size()) {
    for (std::size_t i = group + 1; i < group + 4; ++i) {
      if (i >= digits.size() || !is_digit(digits[i])) return false;
    }
    group += 4;
    if (group < digits.size() && digits[group] != separator) return false;
  }
  return true;
}

std::string_view unsigned_part(std::string_view text) {
  return !text.empty() && (text[0] == '-' || text[0] == '+') ? text.substr(1) : text;
}

}  // namespace

void DecimalVote::look(std::string_view number) {
  const std::string text = bare(trim(number));
  const std::string_view digits = unsigned_part(text);
  if (digits.empty() || !is_digit(digits[0])) return;
  if (!std::all_of(digits.begin(), digits.end(),
                   [](char c) { return is_digit(c) || c == '.' || c == ','; })) {
    return;
  }
  const std::size_t comma = digits.rfind(',');
  const std::size_t point = digits.rfind('.');
  if (comma == std::string_view::npos && point == std::string_view::npos) return;
  if (comma != std::string_view::npos && point != std::string_view::npos) {
    comma > point ? ++comma_ : ++point_;
  } else if (comma != std::string_view::npos) {
    if (!is_grouped(digits, ',')) ++comma_;
    // Two separators can only mark thousands.
    if (std::count(digits.begin(), digits.end(), ',') > 1) ++point_;
  } else {
    if (!is_grouped(digits, '.')) ++point_;
    if (std::count(digits.begin(), digits.end(), '.') > 1) ++comma_;
  }
}

std::optional<double> read_number(std::string_view text, DecimalSign sign) {
  std::string digits = bare(trim(text));
  if (digits.empty()) return std::nullopt;
  const char thousands = sign == DecimalSign::kPoint ? ',' : '.';
  std::erase(digits, thousands);
  std::replace(digits.begin(), digits.end(), ',', '.');
  const std::string_view body = unsigned_part(digits);
  if (body.empty() || (!is_digit(body[0]) && body[0] != '.')) return std::nullopt;
  if (body.find_first_of("xXpP") != std::string_view::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (end == digits.c_str() || !std::isfinite(value)) return std::nullopt;
  // "43.1 %" and similar: the sign after the number is fine.
  const std::string_view rest = trim(end);
  if (!rest.empty() && rest != "%") return std::nullopt;
  return value;
}

namespace {

struct Word {
  std::string_view name;
  std::string_view dimension;
  double scale = 1;
};

constexpr Word kWords[] = {
    {"second", "s"},   {"seconds", "s"},  {"sec", "s"},     {"s", "s"},      {"byte", "byte"},
    {"bytes", "byte"}, {"B", "byte"},     {"b", "bit"},     {"bit", "bit"},  {"hz", "/s"},
    {"Hz", "/s"},      {"%", "%"},        {"pct", "%"},     {"inst", ""},    {"instruction", ""},
    {"cycle", ""},     {"cycles", ""},    {"sector", ""},   {"request", ""}, {"warp", ""},
    {"warps", ""},     {"thread", ""},    {"register", ""}, {"block", ""},   {"launch", ""},
    {"node", ""},      {"wavefront", ""}, {"pass", ""},     {"1", ""},       {"", ""},
    {"count", ""},     {"call", ""},      {"op", ""},       {"FLOP", ""},    {"inst_issued", ""},
    {"issue", ""},     {"SM", ""},        {"device", ""},   {"event", ""},   {"tag", ""},
};

std::optional<double> prefix_scale(char prefix) {
  switch (prefix) {
    case 'n':
      return 1e-9;
    case 'u':
      return 1e-6;
    case 'm':
      return 1e-3;
    case 'k':
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'G':
      return 1e9;
    case 'T':
      return 1e12;
    case 'P':
      return 1e15;
    default:
      return std::nullopt;
  }
}

std::optional<Unit> read_word(std::string_view word) {
  for (const Word& known : kWords) {
    if (word == known.name) return Unit{known.scale, std::string(known.dimension)};
  }
  if (word.size() < 2) return std::nullopt;
  const auto scale = prefix_scale(word[0]);
  std::string_view rest = word.substr(1);
  // "KiB" is 1024 bytes.
  const bool binary = rest.size() > 1 && rest[0] == 'i' && (rest[1] == 'B' || rest[1] == 'b');
  if (binary) rest.remove_prefix(1);
  if (!scale) return std::nullopt;
  for (const Word& known : kWords) {
    if (rest.empty() || rest != known.name) continue;
    return Unit{binary ? std::pow(1024.0, std::round(std::log10(*scale) / 3)) : *scale,
                std::string(known.dimension)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Unit> read_unit(std::string_view text) {
  text = trim(text);
  const std::size_t slash = text.find('/');
  auto above = read_word(trim(text.substr(0, slash)));
  if (!above || slash == std::string_view::npos) return above;
  const auto below = read_word(trim(text.substr(slash + 1)));
  if (!below) return std::nullopt;
  Unit unit{above->scale / below->scale, above->dimension};
  if (!below->dimension.empty()) {
    unit.dimension =
        below->dimension == above->dimension ? "" : unit.dimension + "/" + below->dimension;
  }
  return unit;
}

std::optional<double> convert_unit(std::string_view from, std::string_view to) {
  if (trim(from).empty()) return 1;
  const auto given = read_unit(from);
  const auto wanted = read_unit(to);
  if (!given || !wanted || given->dimension != wanted->dimension) return std::nullopt;
  return given->scale / wanted->scale;
}

}  // namespace kernelpro
