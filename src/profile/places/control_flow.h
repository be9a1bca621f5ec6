// SPDX-License-Identifier: Apache-2.0
// Control flow of a whole function of machine code as basic blocks, backwards: calls of its own
// functions and of the compiler's helpers (division, roots) are entered and left again. Calls from
// several places are not told apart. Pure; any code is safe.
#pragma once

#include <vector>

#include "profile/code/loops.h"
#include "profile/sass/program.h"

namespace kernelpro {

struct CodeBlock {
  int first = 0;
  int last = 0;             // inclusive
  std::vector<int> before;  // blocks from which control comes
};

struct ControlFlow {
  std::vector<CodeBlock> blocks;  // in code order; they cover all instructions
  std::vector<int> block_of;      // of each instruction
  // Of each instruction: the call that leads to it when it is in a helper of the compiler, which
  // has no lines of its own; else -1.
  std::vector<int> called_from;
};

// `flow`: of flow_of(function).
ControlFlow control_flow(const SassFunction& function, const std::vector<Flow>& flow);

}  // namespace kernelpro
