// SPDX-License-Identifier: Apache-2.0
// Reads GPU disassembly, `nvdisasm -c` or `cuobjdump -sass`, of sm_70 to sm_121: which loops of a
// kernel are hot, and what their instructions do.
// Pure. Any bytes are safe; what is not understood is left out or counted as unknown.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/sass_opcodes.h"

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

std::vector<SassFunction> parse_sass(std::string_view text);

// Counts under the names of the metric registry: sass.*, sass.hot.*, sass.loop.*.
struct SassMix {
  std::map<std::string, double> metrics;
  // Where most of what a metric counts comes from, as far as line information tells:
  // "sass.hot.fp64" -> "kernel.cu:41, kernel.cu:44".
  std::map<std::string, std::string> where;
  int loops = 0;      // 0: no loop, the whole body was counted
  double weight = 0;  // an estimate of the work in the hot loops, to compare kernels by
  std::string text;   // the hot loops, for people
  std::string chain;  // the longest carried chain of the hottest loop, for people; "" = none
  std::string waits;  // what waits for what in the hottest loop, for people; "" = nothing
};

// A loop is hot by its nesting and by its matrix, arithmetic and memory instructions. Left out:
// loops that only wait, remainders of unrolled loops, and paths that only rare operands take.
SassMix hot_mix(const SassFunction& kernel);

struct SassKernel {
  std::string name;  // mangled
  SassMix mix;
};

// The mix of every kernel in the text, in its order.
std::vector<SassKernel> kernel_mixes(std::string_view text);

}  // namespace kernelpro
