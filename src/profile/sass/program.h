// SPDX-License-Identifier: Apache-2.0
// Parsed GPU machine code.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/sass/op.h"

namespace kernelpro {

// The compiler's scheduling control bits beside each instruction (`-hex`). NVIDIA does not document
// them; the layout for sm_70 to sm_121 follows several open-source decoders.
struct SassControl {
  bool known = false;
  std::uint8_t stall = 1;       // minimum cycles until the warp's next instruction
  std::uint8_t written_by = 7;  // scoreboard released when the result is ready; 7 = none
  std::uint8_t read_by = 7;     // scoreboard released when the operands are read; 7 = none
  std::uint8_t waits = 0;       // bit mask of scoreboards to wait for before issue
};

struct SassInstruction {
  unsigned long long address = 0;
  std::string guard;                   // "@!P0", "@UP1", ""
  std::string root;                    // "LDG"
  std::vector<std::string> modifiers;  // "E", "128"
  std::string operands;
  Op op = Op::kUnknown;
  SassControl control;
  int file = -1;  // index into the function's `files`; -1: no line information
  int line = 0;
  int calls = -1;  // index into the function's `calls`: of an inlined function; -1: of none

  bool has(std::string_view modifier) const;
};

struct SassFunction {
  std::string name;   // mangled, as in the object
  std::string arch;   // "sm_90a"; "" = unknown
  bool entry = true;  // a kernel; false: a separate device function
  std::vector<SassInstruction> code;
  std::map<std::string, int> labels;  // index of the instruction after each label
  std::vector<std::string> files;     // names without folders
  std::vector<std::string> folders;   // of each file; "": unknown
  // Chains of calls that were inlined, the innermost first: file and line of each, in the author's
  // own code.
  std::vector<std::vector<std::pair<int, int>>> calls;
};

}  // namespace kernelpro
