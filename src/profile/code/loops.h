// SPDX-License-Identifier: Apache-2.0
// Loops of one function's machine code, for CPU and GPU disassembly alike.
//
// A loop is a strongly connected component of the basic blocks; its inner loops are those of the
// component without its entry blocks (Steensgaard, "Sequentializing program dependence graphs for
// irreducible programs", 1993). With one entry per loop these are the natural loops. Loops with
// several entries are found too: compilers create them from collapsed loops, and from loops whose
// first inner loop may be skipped.
// Out-of-line blocks that jump back into a loop are part of it.
// Pure functions. Any input is safe and the work is bounded: overly tangled code yields fewer
// loops, never a hang.
#pragma once

#include <cstddef>
#include <vector>

namespace kernelpro {

// Where control goes after one instruction; target -1: no jump within this function.
struct Flow {
  int target = -1;             // index of the possible jump target
  bool falls_through = true;   // whether the next instruction may follow
  std::vector<int> more = {};  // further targets, of a jump table
};

struct Loop {
  std::vector<int> body;          // indices of its instructions, inner loops included, ascending
  int header = 0;                 // index of the entry instruction
  std::vector<int> entries = {};  // all entries, if there are several; the header too
  int depth = 1;                  // 1 = outermost
  int parent = -1;                // index in the result of the enclosing loop; -1 = none
  bool innermost = true;
};

// Loops reachable from instruction 0, ordered by header. Loops that share a header are merged.
std::vector<Loop> find_loops(const std::vector<Flow>& code);

// Instructions reachable from instruction 0, ascending.
std::vector<int> reachable(const std::vector<Flow>& code);

}  // namespace kernelpro
