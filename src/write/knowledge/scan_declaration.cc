// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/scan_declaration.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace kernelpro {

namespace {

// Each unmatched < is searched to the head's end; many mean that this is no declaration.
constexpr int kMostUnclosed = 8;

// An identifier or punctuation mark of the head, outside comments, strings, () [] and <>.
struct Token {
  std::string_view text;
  bool call = false;  // an identifier before a parenthesis
};

// One pass over the head. Skips the contents of brackets; "(" itself stays as a token.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {
    while (at_ < text_.size()) step();
  }
  std::vector<Token> list;

 private:
  void step() {
    const char c = text_[at_];
    const std::size_t quiet = end_of_comment(at_);
    if (quiet > at_) {
      at_ = quiet;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (in_identifier(c)) {
      word();
    } else if (c == '(' || c == '[' || c == '{') {
      if (c == '(' && !list.empty() && in_identifier(list.back().text.back()))
        list.back().call = true;
      if (c != '[') list.push_back({text_.substr(at_, 1)});
      brackets(c, c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == '<' && angles()) {
      // skipped
    } else {
      if (c == ':' || c == '=' || c == '"' || c == '~') list.push_back({text_.substr(at_, 1)});
      ++at_;
    }
  }

  // Past the comment that starts at `at`; `at` when none does.
  std::size_t end_of_comment(std::size_t at) const {
    if (text_[at] != '/' || at + 1 >= text_.size()) return at;
    const bool line = text_[at + 1] == '/';
    if (!line && text_[at + 1] != '*') return at;
    const std::size_t end = text_.find(line ? "\n" : "*/", at + 2);
    return end == std::string_view::npos ? text_.size() : end + (line ? 1 : 2);
  }

  void word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && in_identifier(text_[at_])) ++at_;
    const std::string_view found = text_.substr(begin, at_ - begin);
    if (found != "operator") {
      list.push_back({found});
      return;
    }
    // operator and its symbol are one name; operator() has its own parentheses.
    std::size_t end = at_;
    while (end < text_.size() && text_[end] == ' ') ++end;
    if (text_.substr(end, 2) == "()") {
      end += 2;
    } else {
      while (end < text_.size() && text_[end] != '(') ++end;
    }
    list.push_back({text_.substr(begin, end - begin)});
    at_ = end;
    if (at_ < text_.size() && text_[at_] == '(') list.back().call = true;
    if (at_ < text_.size() && text_[at_] == '(') {
      list.push_back({text_.substr(at_, 1)});
      list[list.size() - 2].call = true;
      brackets('(', ')');
    }
  }

  void brackets(char open, char close) {
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == open) ++depth;
      if (text_[at_] == close && --depth == 0) break;
    }
    if (at_ < text_.size()) ++at_;
  }

  // Skips a closed <...>; otherwise < is an operator.
  bool angles() {
    if (unclosed_ >= kMostUnclosed) return false;
    int depth = 0;
    int parens = 0;
    for (std::size_t i = at_; i < text_.size(); ++i) {
      const std::size_t quiet = end_of_comment(i);
      if (quiet > i) {  // ///< the parameter's meaning
        i = quiet - 1;
        continue;
      }
      const char c = text_[i];
      if (c == '(') ++parens;
      if (c == ')') --parens;
      if (parens > 0) continue;
      if (c == '<') ++depth;
      if (c == '>' && --depth == 0) {
        at_ = i + 1;
        return true;
      }
      if (c == ';' || c == '{') break;
    }
    ++unclosed_;
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int unclosed_ = 0;  // < without a >
};

bool is_name(std::string_view word) {
  return !word.empty() && in_identifier(word[0]) &&
         std::isdigit(static_cast<unsigned char>(word[0])) == 0;
}

// Words followed by parentheses that are not a function's name.
bool is_decoration(std::string_view word) {
  for (const std::string_view known : {"alignas",
                                       "__attribute__",
                                       "__launch_bounds__",
                                       "decltype",
                                       "noexcept",
                                       "requires",
                                       "CUTLASS_ALIGNAS",
                                       "__declspec",
                                       "sizeof",
                                       "static_assert",
                                       "if",
                                       "for",
                                       "while",
                                       "switch",
                                       "explicit",
                                       "__align__",
                                       "__cluster_dims__",
                                       "__grid_constant__",
                                       "asm",
                                       "return"}) {
    if (word == known) return true;
  }
  return false;
}

Declaration read_type(const std::vector<Token>& list, std::size_t key) {
  Declaration found;
  found.what = Declaration::kType;
  found.enumeration = list[key].text == "enum";
  for (std::size_t i = key + 1; i < list.size(); ++i) {
    const Token& token = list[i];
    if (token.text == ":" && !(i + 1 < list.size() && list[i + 1].text == ":")) break;
    if (token.text == ":") ++i;
    if (is_name(token.text) && !token.call && token.text != "final" && token.text != "class" &&
        token.text != "struct") {
      found.name = std::string(token.text);
    }
  }
  return found;
}

}  // namespace

std::string_view identifier_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && in_identifier(text[end])) ++end;
  const std::string_view word = text.substr(std::min(at, text.size()), end - std::min(at, end));
  return is_name(word) ? word : std::string_view();
}

Declaration read_declaration(std::string_view head, char end) {
  const std::vector<Token> list = Tokens(head).list;
  Declaration found;
  std::size_t assign = list.size();
  std::size_t call = list.size();
  std::size_t type = list.size();
  std::size_t colon = list.size();  // a single one, after the parentheses
  bool external = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string_view text = list[i].text;
    const bool early = call == list.size() && assign == list.size();
    if (text == "namespace" && i <= 1) found.what = Declaration::kNamespace;
    if (i == 0 && text == "extern") external = true;
    if (early && (text == "struct" || text == "class" || text == "union" || text == "enum") &&
        type == list.size()) {
      type = i;
    }
    if (text == "=" && assign == list.size()) assign = i;
    if (early && list[i].call && !is_decoration(text)) call = i;
    if (text == ":" && call < i && colon == list.size()) {
      const bool twice = i + 1 < list.size() && list[i + 1].text == ":";
      if (twice) {
        ++i;
      } else {
        colon = i;
      }
    }
  }
  if (found.what == Declaration::kNamespace) return found;
  if (external && end == '{' && call == list.size() && type == list.size()) {
    found.what = Declaration::kNamespace;
    return found;
  }
  const bool typedefs = !list.empty() && list[0].text == "typedef";
  if (end == ';') {
    // using Name = ...; typedef ... Name; type name(...); type name = ...;
    if (!list.empty() && list[0].text == "using" && assign < list.size() && assign > 1) {
      found.alias = true;
      found.name = std::string(list[assign - 1].text);
    } else if (typedefs && list.size() > 1 && is_name(list.back().text)) {
      found.alias = true;
      found.name = std::string(list.back().text);
    } else if (call < assign) {
      found.name = std::string(list[call].text);
    } else if (assign < list.size() && assign > 0 && is_name(list[assign - 1].text)) {
      found.name = std::string(list[assign - 1].text);
    }
    if (type < list.size() && call == list.size()) found.name.clear();
    if (call <= 0 || found.name == "static_assert") found.name.clear();
    return found;
  }
  // When a function returns a type, the function's parentheses follow it.
  if (type < list.size() && call == list.size() && assign == list.size()) {
    return read_type(list, type);
  }
  if (type < list.size() && call > type && call < list.size()) {
    // struct MACRO(16) Name {: only names after the parentheses.
    const Declaration maybe = read_type(list, type);
    const bool name_last = is_name(list.back().text) && list.back().text == maybe.name;
    if (call == type + 1 && name_last) return maybe;
  }
  if (call < list.size() && call < assign) {
    // Foo(): member{1}: a member's braces, not the body's.
    std::size_t last = head.size();
    while (last > 0 && std::isspace(static_cast<unsigned char>(head[last - 1])) != 0) --last;
    if (colon < list.size() && last > 0 && in_identifier(head[last - 1])) return found;
    found.what = Declaration::kFunction;
    found.name = std::string(list[call].text);
    if (call > 0 && list[call - 1].text == "~") found.name = "~" + found.name;
  }
  return found;
}

}  // namespace kernelpro
