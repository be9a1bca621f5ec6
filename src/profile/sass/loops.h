// SPDX-License-Identifier: Apache-2.0
// Which instructions of a kernel run most: its hot loops.
#pragma once

#include <vector>

#include "profile/code/loops.h"
#include "profile/sass/program.h"

namespace kernelpro {

// Where control goes after each instruction. Calls of the kernel's own device functions lead there;
// those of the compiler's helpers (division, roots) are followed by the next instruction alone.
std::vector<Flow> flow_of(const SassFunction& function);

struct HotLoop {
  std::vector<int>
      own;  // its instructions that are in no inner loop and on no slow path, ascending
  std::vector<int> body;  // its instructions, inner loops included, ascending
  int parent = -1;        // the loop around it; -1 = none
  int depth = 1;          // 1 = in no other loop; call sites included
  int header = 0;         // the instruction that it is entered at
  double weight = 0;      // estimated work of all its iterations
  bool loops = true;      // false: the kernel has no loop, and this is all of it
};

struct HotCode {
  std::vector<HotLoop> hot;  // the heaviest first
  int loops = 0;             // of the kernel, those that only wait left out
  int wait_loops = 0;
  int cas_loops = 0;                 // around a compare-and-swap
  std::vector<int> depth;            // of each instruction; 0 = in no loop
  std::vector<int> reached;          // instructions that are part of the kernel, ascending
  std::vector<Flow> flow;            // of each instruction
  std::vector<bool> cold;            // on a path that only rare operands take
  int trigonometric_slow_paths = 0;  // in the hot loops
};

HotCode find_hot_code(const SassFunction& kernel);

// A helper that only rare operands need; a 64-bit integer division or remainder.
bool calls_slow_path(const SassInstruction& i);
bool calls_integer_division(const SassInstruction& i);

}  // namespace kernelpro
