// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/tokens.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/text.h"

namespace kernelpro {

namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Suffix {
  std::string_view end;
  std::size_t rest;  // at least this many letters must remain
};

// The first match is removed.
constexpr std::array<Suffix, 36> kSuffixes = {{
    {"izations", 4}, {"ization", 4}, {"izing", 4},    {"izers", 4},   {"izer", 4},   {"ized", 4},
    {"izes", 4},     {"ize", 4},     {"isations", 4}, {"isation", 4}, {"ising", 4},  {"isers", 4},
    {"iser", 4},     {"ised", 4},    {"ises", 4},     {"ise", 4},     {"ations", 4}, {"ation", 4},
    {"ators", 5},    {"ator", 5},    {"ating", 4},    {"ated", 4},    {"ates", 4},   {"ately", 4},
    {"ate", 5},      {"tions", 4},   {"tion", 4},     {"ings", 4},    {"ing", 3},    {"ers", 5},
    {"er", 5},       {"ed", 3},      {"ies", 3},      {"ities", 4},   {"ity", 4},    {"ly", 4},
}};

}  // namespace

std::string stem(std::string_view word) {
  std::string out(word);
  if (out.size() < 4 || !std::all_of(out.begin(), out.end(), is_lower)) return out;
  bool cut = false;
  for (const Suffix& suffix : kSuffixes) {
    const std::size_t n = suffix.end.size();
    if (out.size() < n + suffix.rest || out.compare(out.size() - n, n, suffix.end) != 0) continue;
    out.resize(out.size() - n);
    if (suffix.end == "ies") out += 'y';
    cut = true;
    break;
  }
  if (!cut && out.size() > 3 && out.back() == 's' && out[out.size() - 2] != 's' &&
      out[out.size() - 2] != 'u' && out[out.size() - 2] != 'i') {
    out.pop_back();
  }
  if (out.size() > 3 && out.back() == 'e') out.pop_back();
  // splitting -> split, mapped -> map
  if (cut && out.size() > 3 && out.back() == out[out.size() - 2] && out.back() != 'l' &&
      out.back() != 's' && out.back() != 'e') {
    out.pop_back();
  }
  return out;
}

bool is_stop_word(std::string_view word) {
  static const std::unordered_set<std::string_view> kWords = {
      "a",         "an",         "the",      "and",     "or",      "of",        "to",
      "in",        "on",         "at",       "by",      "for",     "with",      "from",
      "into",      "is",         "are",      "be",      "was",     "were",      "it",
      "its",       "this",       "that",     "these",   "those",   "as",        "so",
      "do",        "does",       "how",      "what",    "where",   "which",     "when",
      "who",       "that",       "than",     "then",    "there",   "can",       "will",
      "would",     "should",     "has",      "have",    "had",     "not",       "no",
      "but",       "if",         "else",     "while",   "return",  "const",     "static",
      "typename",  "template",   "void",     "auto",    "using",   "namespace", "include",
      "ifdef",     "ifndef",     "endif",    "define",  "defined", "int",       "public",
      "private",   "true",       "false",    "struct",  "class",   "constexpr", "inline",
      "operator",  "sizeof",     "unsigned", "we",      "i",       "you",       "me",
      "my",        "our",        "their",    "about",   "all",     "any",       "some",
      "such",      "also",       "each",     "over",    "through", "still",     "runs",
      "one",       "once",       "other",    "them",    "they",    "get",       "find",
      "show",      "use",        "used",     "using",   "uses",    "via",       "between",
      "out",       "up",         "off",      "only",    "own",     "same",      "just",
      "not",       "definition", "function", "after",   "before",  "several",   "many",
      "different", "without",    "every",    "both",    "again",   "already",   "more",
      "less",      "most",       "very",     "another", "next",    "previous",  "like",
      "within",    "until",      "because",  "made",    "make",    "makes",     "must",
      "may",       "might",      "here",     "too",     "even",    "few",       "whose",
      "whether",   "example",    "examples", "code"};
  return kWords.count(word) != 0;
}

std::vector<std::string> identifier_parts(std::string_view identifier) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at < identifier.size()) {
    if (identifier[at] == '_') {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < identifier.size() && identifier[end] != '_') {
      const char before = identifier[end - 1];
      const char c = identifier[end];
      const char next = end + 1 < identifier.size() ? identifier[end + 1] : '\0';
      if (is_upper(c) && is_lower(before)) break;
      if (is_upper(c) && is_digit(before) && is_lower(next)) break;
      if (is_upper(c) && is_upper(before) && is_lower(next)) break;
      ++end;
    }
    std::string part = small_letters(identifier.substr(at, end - at));
    if (part.size() == 1 && !parts.empty()) {
      parts.push_back(parts.back() + part);
    } else {
      parts.push_back(std::move(part));
    }
    at = end;
  }
  return parts;
}

std::uint32_t Words::number(const std::string& token) {
  const auto [found, added] = numbers_.emplace(token, static_cast<std::uint32_t>(texts_.size()));
  if (added) texts_.push_back(token);
  return found->second;
}

const std::vector<std::uint32_t>& Words::of(std::string_view word) {
  key_.assign(word);
  const auto found = known_.find(key_);
  if (found != known_.end()) return found->second;
  std::vector<std::uint32_t> tokens;
  const auto add = [&](const std::string& token) {
    if (token.size() < 2 || is_stop_word(token)) return;
    const std::uint32_t n = number(token);
    if (std::find(tokens.begin(), tokens.end(), n) == tokens.end()) tokens.push_back(n);
  };
  const bool only_digits = std::all_of(word.begin(), word.end(), is_digit);
  if (!(only_digits && word.size() > 4) && word.substr(0, 2) != "0x") {
    const std::vector<std::string> parts = identifier_parts(word);
    if (parts.size() > 1) {
      std::string whole = small_letters(word);
      while (!whole.empty() && whole.front() == '_') whole.erase(0, 1);
      while (!whole.empty() && whole.back() == '_') whole.pop_back();
      if (parts.size() > 1) add(whole);
    }
    for (const std::string& part : parts) {
      if (!is_stop_word(part)) add(stem(part));
    }
  }
  return known_.emplace(key_, std::move(tokens)).first->second;
}

}  // namespace kernelpro
