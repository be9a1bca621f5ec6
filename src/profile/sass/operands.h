// SPDX-License-Identifier: Apache-2.0
// Which registers an instruction writes and reads. The text does not show how many registers an
// operand spans; that follows from the opcode and its modifiers.
#pragma once

#include <string_view>
#include <vector>

#include "profile/sass/program.h"

namespace kernelpro {

// Registers by number: R0 is 0, UR0 is kFirstUniform, P0 is kFirstPredicate, UP0 is
// kFirstUniformPredicate. Constant registers (RZ, PT) do not count.
inline constexpr int kFirstUniform = 256;
inline constexpr int kFirstPredicate = 512;
inline constexpr int kFirstUniformPredicate = 520;
inline constexpr int kRegisterSlots = 528;

struct RegisterSpan {
  int first = 0;
  int count = 1;
};

// How a value is used.
enum class Use { kData, kAddress, kGuard };

struct OperandUse {
  RegisterSpan registers;
  Use use = Use::kData;
};

struct Access {
  std::vector<RegisterSpan> writes;
  std::vector<OperandUse> reads;
};

Access access_of(const SassInstruction& i);

// Operands between top-level commas, trimmed.
std::vector<std::string_view> split_operands(std::string_view operands);

// The register named in the text, e.g. "-R4.H0_H0" or "UR12"; -1: none.
int register_of(std::string_view operand);

// The memory operand: "desc[UR4][R2.64+0x10]" has the 64-bit base R2 and offset 0x10.
struct Address {
  bool found = false;
  int base = -1;      // R register; -1: none
  int uniform = -1;   // UR register added to it; -1: none
  int scale = 1;      // "R3.X4": 4
  bool wide = false;  // the base is a register pair
  long long offset = 0;
  std::string_view space;  // text before the last bracket: "desc[UR4]", "c[0x3]", ""
};
Address address_of(const SassInstruction& i);

}  // namespace kernelpro
