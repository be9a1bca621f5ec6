// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernel_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

// libstdc++'s demangler that hands over its text piece by piece; 0: all of it. No header has it,
// and only the static library; the weak reference is null with the shared one (sanitizers' builds).
extern "C" [[gnu::weak]] int __gcclibcxx_demangle_callback(  // NOLINT
    const char* name, void (*take)(const char* piece, std::size_t bytes, void* to), void* to);

namespace kernelpro {

namespace {

constexpr std::size_t kMostMangled = 2048;  // the demangler's stack grows with its square
constexpr std::size_t kMostText = 32 * 1024;
constexpr std::ptrdiff_t kMostReferences = 10;  // each may double the text: with the shared library

struct Text {
  char bytes[kMostText];
  std::size_t used;
  std::jmp_buf full;
};

// Leaves the demangler, which is C and holds nothing but its stack, as soon as there is too much.
void take(const char* piece, std::size_t bytes, void* to) {
  auto* const text = static_cast<Text*>(to);
  if (bytes > kMostText - text->used) std::longjmp(text->full, 1);
  std::memcpy(text->bytes + text->used, piece, bytes);
  text->used += bytes;
}

bool spelled_out(const char* name, Text* text) {
  text->used = 0;
  if (setjmp(text->full) != 0) return false;
  return __gcclibcxx_demangle_callback(name, take, text) == 0;
}

std::string spelled_out_by_references(const std::string& name) {
  if (std::count_if(name.begin(), name.end(), [](char c) { return c == 'S' || c == 'T'; }) >
      kMostReferences) {
    return name;
  }
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return name;
  std::string result(text);
  std::free(text);
  return result;
}

// Cut at the first '(' outside template arguments that does not open "(anonymous namespace)".
std::string without_parameters(const std::string& name) {
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>' && depth > 0) --depth;
    if (name[i] != '(' || depth > 0 || i == 0) continue;
    if (name.compare(i, 11, "(anonymous ") == 0 || name.compare(i, 9, "(unnamed)") == 0) {
      i = name.find(')', i);
      if (i == std::string::npos) return name;
      continue;
    }
    return name.substr(0, i);
  }
  return name;
}

// The part after the last blank or "::" outside template arguments.
std::string last_part(const std::string& name) {
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<' || c == '(') ++depth;
    if ((c == '>' || c == ')') && depth > 0) --depth;
    if (depth > 0) continue;
    if (c == ' ') from = i + 1;
    if (c == ':' && i + 1 < name.size() && name[i + 1] == ':') from = i + 2;
  }
  return from < name.size() ? name.substr(from) : name;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Past a cast before a literal, "(bool)1", or the name of an anonymous namespace.
std::size_t skipped(const std::string& text, std::size_t at) {
  for (const std::string_view unnamed : {"(anonymous namespace)::", "<unnamed>::", "(unnamed)::"}) {
    if (text.compare(at, unnamed.size(), unnamed) == 0) return at + unnamed.size();
  }
  std::size_t before = at;
  while (before > 0 && text[before - 1] == ' ') --before;
  const bool argument = before > 0 && (text[before - 1] == '<' || text[before - 1] == ',');
  if (!argument || text[at] != '(') return at;
  std::size_t close = at;
  for (int depth = 0; close < text.size(); ++close) {
    if (text[close] == '(') ++depth;
    if (text[close] == ')' && --depth == 0) break;
  }
  if (close + 1 >= text.size()) return at;
  const char next = text[close + 1];
  return is_digit(next) || next == '-' ? close + 1 : at;
}

// A word as any tool would spell it: no `const`, whose place differs, literals without a suffix.
std::string common_word(std::string word) {
  if (word == "true") return "1";
  if (word == "false") return "0";
  if (word == "const") return "";
  if (!is_digit(word.front())) return word;
  while (word.find_last_of("uUlL") == word.size() - 1) word.pop_back();
  return word;
}

}  // namespace

std::string demangled(const std::string& name) {
  if (name.rfind("_Z", 0) != 0 || name.size() > kMostMangled) return name;
  if (__gcclibcxx_demangle_callback == nullptr) return spelled_out_by_references(name);
  Text text;
  return spelled_out(name.c_str(), &text) ? std::string(text.bytes, text.used) : name;
}

std::string kernel_key(const std::string& name) {
  const std::string text = last_part(std::string(trim(without_parameters(demangled(name)))));
  std::string key;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && in_identifier(text[end])) ++end;
    if (const std::size_t to = skipped(text, i); to > i) {
      end = to;
    } else if (end > i) {
      key += common_word(text.substr(i, end - i));
    } else if (text[end++] != ' ') {
      key += text[i];
    }
    i = end;
  }
  return key;
}

std::string short_kernel_name(const std::string& name, std::size_t width) {
  std::string text = last_part(std::string(trim(without_parameters(demangled(name)))));
  if (text.size() <= width) return text;
  const std::size_t open = text.find('<');
  if (open != std::string::npos && open > 0) {
    if (open + 5 > width) return text.substr(0, width > 3 ? width - 3 : 0) + "...";
    return text.substr(0, width > open + 5 ? width - 4 : open + 1) + "...>";
  }
  return text.substr(0, width > 3 ? width - 3 : 0) + "...";
}

}  // namespace kernelpro
