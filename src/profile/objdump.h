// SPDX-License-Identifier: Apache-2.0
// Reads `objdump -d --no-show-raw-insn -M intel` of a CPU candidate's shared object: which loops
// are hot, and what their instructions do.
//
// Looked at: `launch`, what it calls or takes the address of (OpenMP's outlined functions among
// them), and entry points of std::thread and std::function; not start-up code, not the PLT.
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

// Functions of the sections that hold code of the program's own, in file order.
std::vector<AsmFunction> parse_objdump(std::string_view text);

struct AsmMix {
  int instructions = 0;
  int packed_fp = 0;         // packed floating-point arithmetic
  int scalar_fp = 0;         // scalar floating-point arithmetic, x87 included
  int vector_bits = 0;       // widest register of the packed arithmetic; 0 without any
  int streaming_stores = 0;  // movnt*, anywhere in the code that is reached
  int calls = 0;
  int loops = 0;     // 0: no loop at all, the whole code was counted
  std::string text;  // the hot loops, for people
};

// Sums over the hot loops. A loop counts as hot by its nesting (call sites included) and its
// floating-point work; scalar remainders of packed loops are left out. Zero
// instructions when the text holds no code.
AsmMix hot_mix(const std::vector<AsmFunction>& functions);

}  // namespace kernelpro
