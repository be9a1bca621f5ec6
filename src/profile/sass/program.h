// SPDX-License-Identifier: Apache-2.0
// GPU machine code as it was read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/sass/op.h"

namespace kernelpro {

// What the compiler tells the scheduler, from the bits beside each instruction (`-hex`). NVIDIA
// does not document them; the layout is that of sm_70 to sm_121 as several open decoders read it.
struct SassControl {
  bool known = false;
  std::uint8_t stall = 1;       // cycles until the warp's next instruction, at least
  std::uint8_t written_by = 7;  // scoreboard released when the result is there; 7 = none
  std::uint8_t read_by = 7;     // scoreboard released when the operands are read; 7 = none
  std::uint8_t waits = 0;       // scoreboards to wait for before it issues, as bits
};

struct SassInstruction {
  unsigned long long address = 0;
  std::string guard;                   // "@!P0", "@UP1", ""
  std::string root;                    // "LDG"
  std::vector<std::string> modifiers;  // "E", "128"
  std::string operands;
  Op op = Op::kUnknown;
  SassControl control;
  int file = -1;  // of the function's `files`; -1: no line information
  int line = 0;

  bool has(std::string_view modifier) const;
};

struct SassFunction {
  std::string name;   // as in the object: mangled
  std::string arch;   // "sm_90a"; "" when the text does not say
  bool entry = true;  // a kernel; false: a device function of its own
  std::vector<SassInstruction> code;
  std::map<std::string, int> labels;  // index of the instruction after each
  std::vector<std::string> files;     // names without folders
};

}  // namespace kernelpro
