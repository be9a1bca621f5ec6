// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/c_tokens.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace kernelpro {

namespace {

using Kind = CToken::Kind;
using Tokens = std::vector<CToken>;

bool word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool word_char(char c) { return word_start(c) || std::isdigit(static_cast<unsigned char>(c)); }

// Multi-character tokens, longest first.
constexpr std::string_view kSigns[] = {"<<<", ">>>", "<<=", ">>=", "...", "::", "->", "++",
                                       "--",  "+=",  "-=",  "*=",  "/=",  "%=", "&=", "|=",
                                       "^=",  "==",  "!=",  "<=",  ">=",  "&&", "||"};

class Scanner {
 public:
  explicit Scanner(std::string_view source) : s_(source) {}

  Tokens run() {
    Tokens tokens;
    bool line_start = true;
    while (at_ < s_.size()) {
      const char c = s_[at_];
      if (c == '\n') line_start = true;
      if (std::isspace(static_cast<unsigned char>(c)) || skip_comment()) {
        at_ += std::isspace(static_cast<unsigned char>(c)) ? 1 : 0;
        continue;
      }
      const std::size_t begin = at_;
      const Kind kind = next(line_start);
      line_start = false;
      tokens.push_back({kind, s_.substr(begin, at_ - begin), begin});
    }
    return tokens;
  }

 private:
  bool looking_at(std::string_view text) const { return s_.substr(at_).starts_with(text); }

  bool skip_comment() {
    if (looking_at("//")) {
      while (at_ < s_.size() && s_[at_] != '\n')
        at_ += s_[at_] == '\\' && at_ + 1 < s_.size() ? 2 : 1;
      return true;
    }
    if (!looking_at("/*")) return false;
    const std::size_t end = s_.find("*/", at_ + 2);
    at_ = end == std::string_view::npos ? s_.size() : end + 2;
    return true;
  }

  Kind next(bool line_start) {
    const char c = s_[at_];
    if (c == '#' && line_start) return directive();
    if (raw_text()) return Kind::kText;
    if (c == '"' || c == '\'') return quoted(c);
    if (word_start(c)) {
      while (at_ < s_.size() && word_char(s_[at_])) ++at_;
      return Kind::kWord;
    }
    const bool digit = std::isdigit(static_cast<unsigned char>(c));
    const bool point =
        c == '.' && at_ + 1 < s_.size() && std::isdigit(static_cast<unsigned char>(s_[at_ + 1]));
    if (digit || point) return number();
    for (const std::string_view sign : kSigns) {
      if (!looking_at(sign)) continue;
      at_ += sign.size();
      return Kind::kSign;
    }
    ++at_;
    return Kind::kSign;
  }

  Kind directive() {
    while (at_ < s_.size() && s_[at_] != '\n') {
      if (looking_at("/*") || looking_at("//")) {
        if (skip_comment()) continue;
      }
      at_ += s_[at_] == '\\' && at_ + 1 < s_.size() ? 2 : 1;
    }
    at_ = std::min(at_, s_.size());
    return Kind::kDirective;
  }

  // R"x(...)x"
  bool raw_text() {
    std::size_t i = at_;
    if (looking_at("u8R\"")) i += 2;
    if (looking_at("LR\"") || looking_at("uR\"") || looking_at("UR\"")) i += 1;
    if (i + 1 >= s_.size() || s_[i] != 'R' || s_[i + 1] != '"') return false;
    const std::size_t open = s_.find('(', i);
    if (open == std::string_view::npos || open - i > 18) return false;
    const std::string close = ")" + std::string(s_.substr(i + 2, open - i - 2)) + "\"";
    const std::size_t end = s_.find(close, open);
    at_ = end == std::string_view::npos ? s_.size() : end + close.size();
    return true;
  }

  Kind quoted(char quote) {
    for (++at_; at_ < s_.size() && s_[at_] != quote && s_[at_] != '\n'; ++at_) {
      if (s_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, s_.size());
    return Kind::kText;
  }

  Kind number() {
    while (at_ < s_.size()) {
      const bool exponent = (s_[at_] == '+' || s_[at_] == '-') &&
                            (s_[at_ - 1] == 'e' || s_[at_ - 1] == 'E' || s_[at_ - 1] == 'p');
      const bool separator = s_[at_] == '\'' && at_ + 1 < s_.size() && word_char(s_[at_ + 1]);
      if (!word_char(s_[at_]) && s_[at_] != '.' && !exponent && !separator) break;
      ++at_;
    }
    return Kind::kNumber;
  }

  std::string_view s_;
  std::size_t at_ = 0;
};

std::string directive_name(std::string_view text) {
  std::string_view rest = trim(text.substr(1));
  std::size_t n = 0;
  while (n < rest.size() && word_char(rest[n])) ++n;
  return std::string(rest.substr(0, n));
}

}  // namespace

std::vector<CToken> c_tokens(std::string_view source) { return Scanner(source).run(); }

std::vector<CToken> c_code_tokens(std::string_view source) {
  Tokens kept;
  std::vector<bool> taken, done;  // per open conditional: this branch is kept; one was kept
  for (const CToken& token : c_tokens(source)) {
    if (token.kind != Kind::kDirective) {
      if (std::find(taken.begin(), taken.end(), false) == taken.end()) kept.push_back(token);
      continue;
    }
    const std::string name = directive_name(token.text);
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      const std::string_view condition = trim(trim(token.text.substr(1)).substr(name.size()));
      const bool off = name == "if" && (condition == "0" || condition == "false");
      taken.push_back(!off);
      done.push_back(!off);
    } else if ((name == "else" || name == "elif") && !taken.empty()) {
      taken.back() = !done.back();
      done.back() = true;
    } else if (name == "endif" && !taken.empty()) {
      taken.pop_back();
      done.pop_back();
    }
  }
  return kept;
}

std::string replace_word(std::string_view source, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t done = 0;
  for (const CToken& token : c_tokens(source)) {
    if (token.kind != Kind::kWord || token.text != from) continue;
    out += source.substr(done, token.at - done);
    out += to;
    done = token.at + token.text.size();
  }
  return out + std::string(source.substr(done));
}

}  // namespace kernelpro
