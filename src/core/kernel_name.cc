// SPDX-License-Identifier: Apache-2.0
#include "core/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>

#include "base/text.h"

namespace kernelpro {

namespace {

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

}  // namespace

std::string demangled(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return name;
  std::string result(text);
  std::free(text);
  return result;
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
