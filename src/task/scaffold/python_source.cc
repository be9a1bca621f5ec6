// SPDX-License-Identifier: Apache-2.0
#include "task/scaffold/python_source.h"

#include <cctype>

#include "base/text.h"

namespace kernelpro {

namespace {

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct Literal {
  std::size_t begin = 0, end = 0;  // with prefix and quotes
  std::size_t inside_begin = 0, inside_end = 0;
  bool raw = false;
};

// The string literal at `at`, if one begins there.
bool literal_at(std::string_view s, std::size_t at, Literal* out) {
  std::size_t i = at;
  if (at > 0 && word_char(s[at - 1])) return false;
  while (i < s.size() && i - at < 2 && std::string_view("rRbBfFuU").find(s[i]) != s.npos) {
    out->raw = out->raw || s[i] == 'r' || s[i] == 'R';
    ++i;
  }
  if (i >= s.size() || (s[i] != '"' && s[i] != '\'')) return false;
  const std::string quote(s.substr(i, 3) == std::string(3, s[i]) ? s.substr(i, 3) : s.substr(i, 1));
  out->begin = at;
  out->inside_begin = i + quote.size();
  for (i = out->inside_begin; i < s.size(); ++i) {
    if (s[i] == '\\') {
      ++i;
    } else if (s.substr(i, quote.size()) == quote) {
      out->inside_end = i;
      out->end = i + quote.size();
      return true;
    } else if (quote.size() == 1 && s[i] == '\n') {
      break;  // a stray apostrophe
    }
  }
  out->inside_end = out->end = std::min(i, s.size());
  return true;
}

std::vector<Literal> literals(std::string_view s) {
  std::vector<Literal> all;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '#') {
      while (i < s.size() && s[i] != '\n') ++i;
      continue;
    }
    Literal literal;
    if (!literal_at(s, i, &literal)) continue;
    all.push_back(literal);
    i = literal.end == 0 ? i : literal.end - 1;
  }
  return all;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'n')
      out += '\n';
    else if (c == 't')
      out += '\t';
    else if (c == '\n')
      continue;
    else if (c == '\\' || c == '"' || c == '\'')
      out += c;
    else
      out += std::string("\\") + c;
  }
  return out;
}

void name_block(PythonBlock* block) {
  std::string_view text = block->text;
  std::size_t n = 0;
  while (n < text.size() && word_char(text[n])) ++n;
  const std::string first(text.substr(0, n));
  std::string_view rest = trim(text.substr(n));
  for (const char* keyword : {"import", "from", "class", "def", "if", "try", "with", "for"}) {
    if (first == keyword) block->keyword = keyword;
  }
  if (block->keyword == "class" || block->keyword == "def") {
    n = 0;
    while (n < rest.size() && word_char(rest[n])) ++n;
    block->name = std::string(rest.substr(0, n));
  } else if (block->keyword.empty() && rest.starts_with("=") && !rest.starts_with("==")) {
    block->name = first;
  }
}

}  // namespace

std::vector<std::string> python_strings(std::string_view source) {
  std::vector<std::string> all;
  for (const Literal& literal : literals(source)) {
    const std::string_view inside =
        source.substr(literal.inside_begin, literal.inside_end - literal.inside_begin);
    all.push_back(literal.raw ? std::string(inside) : unescaped(inside));
  }
  return all;
}

std::vector<PythonBlock> python_blocks(std::string_view source) {
  const std::vector<Literal> texts = literals(source);
  std::vector<PythonBlock> blocks;
  std::size_t literal = 0;
  int depth = 0;  // of brackets: no statement starts inside them
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool line_start = i == 0 || source[i - 1] == '\n';
    const char c = source[i];
    const bool opens = std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '@' ||
                       c == '"' || c == '\'' || c == '#';
    if (line_start && depth == 0 && opens) {
      const bool decorated = !blocks.empty() && blocks.back().text.starts_with("@") &&
                             lines(trim(blocks.back().text)).size() == 1;
      const bool branch =
          source.substr(i).starts_with("else") || source.substr(i).starts_with("elif") ||
          source.substr(i).starts_with("except") || source.substr(i).starts_with("finally");
      if (!decorated && !(branch && !blocks.empty())) blocks.emplace_back();
    }
    if (blocks.empty()) blocks.emplace_back();
    while (literal < texts.size() && texts[literal].end <= i) ++literal;
    std::size_t end = i + 1;
    if (literal < texts.size() && texts[literal].begin == i && texts[literal].end > i) {
      end = texts[literal].end;
    } else if (c == '#') {
      while (end < source.size() && source[end] != '\n') ++end;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == ')' || c == ']' || c == '}') && depth > 0) {
      --depth;
    }
    blocks.back().text += source.substr(i, end - i);
    i = end - 1;
  }
  for (PythonBlock& block : blocks) name_block(&block);
  return blocks;
}

}  // namespace kernelpro
