// SPDX-License-Identifier: Apache-2.0
#include "profile/code/objdump.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxInstructions = 400'000;  // of a whole file

bool starts(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool is_prefix(std::string_view word) {
  static const std::set<std::string_view> prefixes = {"bnd",   "notrack", "rep",      "repz",
                                                      "repnz", "lock",    "data16",   "cs",
                                                      "ds",    "es",      "xacquire", "xrelease"};
  return prefixes.count(word) > 0;
}

// "    1150:\tvmulps ymm0,ymm1,ymm2"
bool parse_instruction(std::string_view line, AsmInstruction* instruction) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  if (!parse_hex(trim(line.substr(0, colon)), &instruction->address)) return false;
  std::string_view rest = trim(line.substr(colon + 1));
  for (;;) {
    const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest = trim(rest.substr(end));
    if (is_prefix(word) && !rest.empty()) continue;
    instruction->mnemonic = word;
    instruction->operands = rest;
    return !word.empty();
  }
}

}  // namespace

std::vector<AsmFunction> parse_objdump(std::string_view text) {
  std::vector<AsmFunction> functions;
  bool wanted = true;
  std::size_t total = 0;
  for (std::size_t begin = 0; begin < text.size() && total < kMaxInstructions;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    constexpr std::string_view kSection = "Disassembly of section ";
    if (starts(line, kSection)) {
      wanted = starts(line.substr(kSection.size()), ".text");
      continue;
    }
    const std::size_t open = line.find(" <");
    if (!line.empty() && line[0] != ' ' && open != std::string_view::npos && line.size() > 3 &&
        line.substr(line.size() - 2) == ">:") {
      const std::string_view name = line.substr(open + 2, line.size() - open - 4);
      if (wanted) functions.push_back({std::string(name), {}});
      continue;
    }
    AsmInstruction instruction;
    if (wanted && !functions.empty() && parse_instruction(line, &instruction)) {
      functions.back().code.push_back(std::move(instruction));
      ++total;
    }
  }
  return functions;
}

}  // namespace kernelpro
