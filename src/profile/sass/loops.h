// SPDX-License-Identifier: Apache-2.0
// Finds the hot loops of a kernel: the instructions that run most.
#pragma once

#include <vector>

#include "core/evidence/samples.h"
#include "profile/code/loops.h"
#include "profile/sass/program.h"

namespace kernelpro {

// Where control goes after each instruction. Calls to the kernel's own device functions are
// followed; calls to the compiler's helpers (division, roots) fall through.
std::vector<Flow> flow_of(const SassFunction& function);

struct HotLoop {
  std::vector<int> own;   // its instructions outside inner loops and slow paths, ascending
  std::vector<int> body;  // its instructions, inner loops included, ascending
  int parent = -1;        // the enclosing loop; -1 = none
  int depth = 1;          // 1 = outermost; loops around call sites count
  int header = 0;         // the entry instruction
  double weight = 0;      // estimated work of all its iterations
  double samples = 0;     // measured: samples of its own instructions and of what they call
  bool loops = true;      // false: the kernel has no loop, and this is the whole kernel
};

struct HotCode {
  std::vector<HotLoop> hot;  // heaviest first: by samples where there are some, else by weight
  int loops = 0;             // of the kernel, without wait loops
  int wait_loops = 0;
  int cas_loops = 0;                 // around a compare-and-swap
  std::vector<int> depth;            // of each instruction; 0 = in no loop
  std::vector<int> reached;          // reachable instructions, ascending
  std::vector<Flow> flow;            // of each instruction
  std::vector<bool> cold;            // on a path taken only for rare operands
  int trigonometric_slow_paths = 0;  // in the hot loops
};

// With samples of the kernel, hot is where they lie: loops, or the code outside of all loops. Fewer
// than kFewSamples count as none.
inline constexpr double kFewSamples = 64;
HotCode find_hot_code(const SassFunction& kernel, const KernelSamples* samples = nullptr);

// Calls a helper needed only for rare operands; calls a 64-bit integer division or remainder.
bool calls_slow_path(const SassInstruction& i);
bool calls_integer_division(const SassInstruction& i);

}  // namespace kernelpro
