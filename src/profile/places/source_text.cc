// SPDX-License-Identifier: Apache-2.0
#include "profile/places/source_text.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

namespace kernelpro {

namespace {

constexpr std::size_t kMostTokens = 1'000'000;

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : s_(source) {}

  std::vector<SourceToken> tokens() {
    while (at_ < s_.size() && tokens_.size() < kMostTokens) step();
    return std::move(tokens_);
  }

 private:
  using Kind = SourceToken::Kind;

  bool next_is(std::string_view text) const { return s_.substr(at_).starts_with(text); }

  void skip(std::size_t count) {
    const std::size_t end = std::min(at_ + count, s_.size());
    line_ += static_cast<int>(std::count(s_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         s_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }
  void skip_to(std::string_view end) {
    const std::size_t found = s_.find(end, at_);
    skip(found == std::string_view::npos ? s_.size() : found + end.size() - at_);
  }

  void add(Kind kind, std::size_t length) {
    tokens_.push_back({kind, s_.substr(at_, length), line_});
    at_ += length;
  }

  void step() {
    const char c = s_[at_];
    if (c == '\n') fresh_ = true;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) return skip(1);
    if (next_is("//")) return skip(std::min(s_.find('\n', at_), s_.size()) - at_);
    if (next_is("/*")) return skip_to("*/");
    if (c == '#' && fresh_) return directive();
    fresh_ = false;
    if (next_is("R\"")) return raw_string();
    if (c == '"' || c == '\'') return quoted(c);
    std::size_t n = 1;
    if (begins_name(c)) {
      while (at_ + n < s_.size() && in_name(s_[at_ + n])) ++n;
      return add(Kind::kName, n);
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      // Digits may be grouped: 1'000.
      while (at_ + n < s_.size() &&
             (in_name(s_[at_ + n]) || s_[at_ + n] == '.' ||
              (s_[at_ + n] == '\'' && at_ + n + 1 < s_.size() && in_name(s_[at_ + n + 1])))) {
        ++n;
      }
      return add(Kind::kNumber, n);
    }
    for (const std::string_view mark :
         {"<<<", ">>>", "::", "->", "==", "<=", ">=", "!=", "+=", "-=", "*="}) {
      if (next_is(mark)) return add(Kind::kMark, mark.size());
    }
    add(Kind::kMark, 1);
  }

  void quoted(char quote) {
    skip(1);
    while (at_ < s_.size() && s_[at_] != quote && s_[at_] != '\n') skip(s_[at_] == '\\' ? 2 : 1);
    if (at_ < s_.size() && s_[at_] == quote) skip(1);
  }

  void raw_string() {
    const std::size_t open = s_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 20) return skip(2);
    std::string end = ")";
    end += s_.substr(at_ + 2, open - at_ - 2);
    end += '"';
    skip_to(end);
  }

  // Keeps the name of `#define NAME value` and `#pragma unroll`.
  void directive() {
    std::size_t end = at_;
    while (end < s_.size() && (s_[end] != '\n' || s_[end - 1] == '\\')) ++end;
    const std::size_t word = s_.find_first_not_of(" \t", at_ + 1);
    const std::string_view rest = word < end ? s_.substr(word, end - word) : std::string_view();
    if (rest.starts_with("pragma") && rest.find("unroll") != std::string_view::npos) {
      tokens_.push_back({Kind::kUnroll, rest, line_});
    } else if (rest.starts_with("define")) {
      const std::size_t name = std::min(rest.find_first_not_of(" \t", 6), rest.size());
      std::size_t n = name;
      while (n < rest.size() && in_name(rest[n])) ++n;
      if (n > name) tokens_.push_back({Kind::kDefine, rest.substr(name, n - name), line_});
    }
    skip(end - at_);
  }

  std::string_view s_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool fresh_ = true;  // nothing but blanks since the line's start
  std::vector<SourceToken> tokens_;
};

}  // namespace

std::vector<SourceToken> source_tokens(std::string_view source) { return Lexer(source).tokens(); }

bool is_token(const std::vector<SourceToken>& tokens, std::size_t k, std::string_view text) {
  return k < tokens.size() && tokens[k].text == text &&
         tokens[k].kind != SourceToken::Kind::kDefine &&
         tokens[k].kind != SourceToken::Kind::kUnroll;
}

std::size_t closing_token(const std::vector<SourceToken>& tokens, std::size_t open) {
  const auto is_one = [&](std::size_t k, std::initializer_list<std::string_view> marks) {
    return std::any_of(marks.begin(), marks.end(),
                       [&](std::string_view mark) { return is_token(tokens, k, mark); });
  };
  int depth = 0;
  for (std::size_t k = open; k < tokens.size(); ++k) {
    if (is_one(k, {"(", "{", "["})) ++depth;
    if (is_one(k, {")", "}", "]"}) && --depth <= 0) return k;
  }
  return tokens.empty() ? 0 : tokens.size() - 1;
}

}  // namespace kernelpro
