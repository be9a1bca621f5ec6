// SPDX-License-Identifier: Apache-2.0
#include "build/ptxas.h"

#include <cstdio>

#include "base/text.h"

namespace kernelpro {

namespace {

// The text between the first pair of single quotes.
std::string quoted(const std::string& line) {
  const std::size_t begin = line.find('\'');
  const std::size_t end = begin == std::string::npos ? begin : line.find('\'', begin + 1);
  return end == std::string::npos ? "" : line.substr(begin + 1, end - begin - 1);
}

// The integer right before `words`, or 0.
int number_before(const std::string& line, const std::string& words) {
  const std::size_t at = line.find(words);
  if (at == std::string::npos || at == 0) return 0;
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int value = 0;
  std::sscanf(line.c_str() + begin, "%9d", &value);
  return value;
}

bool is_info(const std::string& line) {
  return contains(line, "ptxas info") || contains(line, "bytes stack frame");
}

}  // namespace

std::map<std::string, KernelResources> parse_ptxas(std::string_view log) {
  std::map<std::string, KernelResources> kernels;
  std::string current;   // of "Compiling entry function"
  std::string function;  // of "Function properties for": a kernel or a device function it calls
  for (const std::string& line : lines(log)) {
    if (contains(line, "Compiling entry function")) {
      current = function = quoted(line);
      kernels[current] = {};
    } else if (const std::size_t at = line.find("Function properties for ");
               at != std::string::npos) {
      function = std::string(trim(std::string_view(line).substr(at + 24)));
    } else if (current.empty()) {
      continue;
    } else if (contains(line, "bytes stack frame") && function == current) {
      KernelResources& k = kernels[current];
      k.stack_bytes = number_before(line, " bytes stack frame");
      k.spill_store_bytes = number_before(line, " bytes spill stores");
      k.spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (contains(line, "Used ") && contains(line, " registers")) {
      KernelResources& k = kernels[current];
      k.registers = number_before(line, " registers");
      k.shared_bytes = number_before(line, " bytes smem");
    }
  }
  return kernels;
}

std::string without_ptxas_info(std::string_view log) {
  std::string rest;
  for (const std::string& line : lines(log)) {
    if (!is_info(line)) rest += line + "\n";
  }
  return rest;
}

}  // namespace kernelpro
