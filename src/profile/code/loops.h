// SPDX-License-Identifier: Apache-2.0
// Loops of one function's machine code, for CPU and GPU disassembly alike.
//
// A loop is a strongly connected component of the basic blocks; the loops in it are those of the
// component without the blocks that it is entered at (Steensgaard, "Sequentializing program
// dependence graphs for irreducible programs", 1993). Where each loop has one entry these are the
// natural loops. Loops that are entered at several places are found as well: compilers make them of
// collapsed loops, and of loops whose first inner loop may be skipped.
// Out-of-line blocks that jump back into a loop are part of it.
// Pure functions. Any input is safe and the work is bounded: code that is too tangled gives fewer
// loops, never a hang.
#pragma once

#include <cstddef>
#include <vector>

namespace kernelpro {

// Where control goes after one instruction; -1: to no other instruction of this function.
struct Flow {
  int target = -1;             // index of the instruction that it may jump to
  bool falls_through = true;   // whether the next instruction may follow
  std::vector<int> more = {};  // further targets: of a jump through a table
};

struct Loop {
  std::vector<int> body;          // indices of its instructions, inner loops included, ascending
  int header = 0;                 // index of the instruction that it is entered at
  std::vector<int> entries = {};  // all of those, where it is entered at several; the header too
  int depth = 1;                  // 1 = in no other loop
  int parent = -1;                // index of the loop around it in the result; -1 = none
  bool innermost = true;
};

// Loops that are reachable from instruction 0, ordered by header. Loops with one header are one.
std::vector<Loop> find_loops(const std::vector<Flow>& code);

// Instructions that are reachable from instruction 0, ascending.
std::vector<int> reachable(const std::vector<Flow>& code);

}  // namespace kernelpro
