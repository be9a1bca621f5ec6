// SPDX-License-Identifier: Apache-2.0
// Parses `objdump -d --no-show-raw-insn -M intel` of a CPU candidate's shared object.
// Pure. Any bytes are safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct AsmInstruction {
  unsigned long long address = 0;
  std::string mnemonic;  // without prefixes: "vmulps", "jne"
  std::string operands;  // "ymm0,ymm1,YMMWORD PTR [rax]", comment included
};

struct AsmFunction {
  std::string name;
  std::vector<AsmInstruction> code;
};

// Functions of the sections that hold the program's own code, in file order.
std::vector<AsmFunction> parse_objdump(std::string_view text);

}  // namespace kernelpro
