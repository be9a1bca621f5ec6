// SPDX-License-Identifier: Apache-2.0
// Operands of x86-64 instructions in objdump's Intel syntax: general registers and stack slots read
// and written, and the floating-point arithmetic done.
// Pure. Any bytes are safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/code/objdump.h"

namespace kernelpro {

struct AsmOperand {
  enum class Kind { kOther, kRegister, kImmediate, kMemory };
  Kind kind = Kind::kOther;
  int reg = -1;                          // 0..15: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15
  long long value = 0;                   // immediate, or a memory operand's displacement
  int base = -1, index = -1, scale = 1;  // of a memory operand
  bool rip = false;                      // a constant in the code
};

inline constexpr int kRsp = 4, kRbp = 5;

// In order; commas inside brackets do not separate operands.
std::vector<AsmOperand> asm_operands(const AsmInstruction& instruction);

enum class Fp { kNone, kPacked, kScalar };
struct Arithmetic {
  Fp kind = Fp::kNone;
  std::string_view operation;  // "add", "fmadd": equal for packed and scalar forms
};

// Arithmetic only: moves, shuffles, compares, logic and conversions do not count.
Arithmetic arithmetic(std::string_view mnemonic);

// Additions, multiplications and dot products of packed integers ("vpaddd", "vpmaddwd",
// "vpdpbusd").
bool is_packed_integer(std::string_view mnemonic);

// Width of the widest register among the operands: 512, 256 or 128.
int vector_bits(std::string_view operands);

// The address and the symbol of a direct jump, call or `lea`: "1150 <launch+0x20>".
struct AsmReference {
  bool valid = false;
  unsigned long long address = 0;
  std::string_view symbol;  // without "+0x20"
};
AsmReference asm_reference(std::string_view operands);

bool is_streaming_store(std::string_view mnemonic);
bool is_return(std::string_view mnemonic);
bool is_jump(std::string_view mnemonic);
bool is_call(std::string_view mnemonic);

// A call to expf, tanh, ... is scalar arithmetic done elsewhere; vector versions, named _ZGV...,
// are packed.
Fp math_call(const AsmInstruction& instruction);

}  // namespace kernelpro
