// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/code_text.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr int kProseWords = 4;

constexpr std::string_view kCppKeywords[] = {
    "alignas", "alignof",   "and",      "asm",      "auto",     "bool",      "break",    "case",
    "catch",   "char",      "class",    "concept",  "const",    "constexpr", "continue", "default",
    "delete",  "do",        "double",   "else",     "enum",     "explicit",  "extern",   "final",
    "float",   "for",       "friend",   "goto",     "if",       "inline",    "int",      "long",
    "mutable", "namespace", "new",      "noexcept", "not",      "operator",  "or",       "override",
    "private", "public",    "register", "return",   "short",    "signed",    "static",   "struct",
    "switch",  "template",  "throw",    "typedef",  "typename", "union",     "unsigned", "using",
    "virtual", "void",      "volatile", "while"};
constexpr std::string_view kPythonKeywords[] = {
    "and",    "as",   "assert", "async",  "await",  "break",   "class",    "continue",
    "def",    "del",  "elif",   "else",   "except", "finally", "for",      "from",
    "global", "if",   "import", "in",     "is",     "lambda",  "nonlocal", "not",
    "or",     "pass", "raise",  "return", "try",    "while",   "with",     "yield"};

bool is_keyword(std::string_view word, Syntax syntax) {
  const auto in = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
  };
  return syntax == Syntax::kPython ? in(kPythonKeywords) : in(kCppKeywords);
}

class Blanker {
 public:
  Blanker(std::string_view text, Syntax syntax)
      : text_(text), python_(syntax == Syntax::kPython), out_(text) {}

  std::string run() {
    while (at_ < text_.size()) step();
    return std::move(out_);
  }

 private:
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  void step() {
    const char c = text_[at_];
    if (python_) {
      if (c == '#') return blank_to("\n", false);
      if (starts("\"\"\"") || starts("'''")) return blank_literal(std::string(3, c));
    } else {
      if (starts("//")) return blank_to("\n", false);
      if (starts("/*")) return blank_to("*/", true);
      if (starts("R\"") && (at_ == 0 || !in_identifier(text_[at_ - 1]))) return blank_raw();
    }
    if (c == '"' || (c == '\'' && !within_word())) return blank_literal(std::string(1, c));
    ++at_;
  }

  // 1'000'000 and don't: no literal starts there. But f'..' and L'..' are literals.
  bool within_word() const {
    std::size_t begin = at_;
    while (begin > 0 && in_identifier(text_[begin - 1])) --begin;
    const std::string_view prefix = text_.substr(begin, at_ - begin);
    return !prefix.empty() &&
           (prefix.size() > 2 || prefix.find_first_not_of("bBfFLrRuU8") != std::string_view::npos);
  }

  void blank(std::size_t end) {
    for (; at_ < std::min(end, text_.size()); ++at_) {
      if (text_[at_] != '\n') out_[at_] = ' ';
    }
  }

  void blank_to(std::string_view end, bool with_it) {
    const std::size_t found = text_.find(end, at_);
    blank(found == std::string_view::npos ? text_.size() : found + (with_it ? end.size() : 0));
  }

  // A quote not closed on its line is an apostrophe, and stays.
  void blank_literal(const std::string& mark) {
    std::size_t end = at_ + mark.size();
    while (end < text_.size() && !text_.substr(end).starts_with(mark)) {
      if (mark.size() == 1 && text_[end] == '\n') {
        at_ += 1;
        return;
      }
      end += text_[end] == '\\' ? 2 : 1;
    }
    blank(end + mark.size());
  }

  void blank_raw() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 18) {
      ++at_;
      return;
    }
    const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
    blank_to(close, true);
  }

  std::string_view text_;
  bool python_;
  std::string out_;
  std::size_t at_ = 0;
};

// A word of a sentence: letters, some of them lower case, and not a keyword.
bool is_plain_word(std::string_view word, Syntax syntax) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool letters = !word.empty() && std::all_of(word.begin(), word.end(), is_letter);
  const bool small =
      std::any_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return letters && small && !is_keyword(word, syntax);
}

bool is_prose(std::string_view line, Syntax syntax) {
  // Neither syntax has backticks; they mark code within prose.
  if (line.find('`') != std::string_view::npos) return true;
  int in_a_row = 0;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ' || line[at] == '\t') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    std::string_view word = line.substr(at, end - at);
    at = end;
    // A comma also separates names in code; a period only ends sentences.
    if (word.size() > 1 && word.back() == '.') word.remove_suffix(1);
    in_a_row = is_plain_word(word, syntax) ? in_a_row + 1 : 0;
    if (in_a_row >= kProseWords) return true;
  }
  return false;
}

}  // namespace

std::string without_comments(std::string_view text, Language language) {
  return Blanker(text, language_row(language).syntax).run();
}

std::string first_prose(const std::string& text, Language language) {
  const Syntax syntax = language_row(language).syntax;
  const std::vector<std::string> code = lines(without_comments(text, language));
  const std::vector<std::string> original = lines(text);
  bool directive = false;  // also the lines that continue it
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::string_view line = trim(code[i]);
    directive = directive || (syntax == Syntax::kC && line.starts_with('#'));
    if (!directive && is_prose(line, syntax)) return std::string(trim(original[i]));
    directive = directive && line.ends_with('\\');
  }
  return "";
}

}  // namespace kernelpro
