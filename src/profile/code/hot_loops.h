// SPDX-License-Identifier: Apache-2.0
// Which loops of a CPU candidate take the time, and what their instructions do.
//
// Covers `launch`, the functions that it calls or takes the address of (OpenMP's outlined functions
// among them), and entry points of std::thread and std::function; not start-up code or the PLT.
//
// A loop's execution count is estimated from its nesting, call sites included, and from the step of
// one iteration. A scalar loop does not count if it
//   - continues where a packed loop ended, or ends where one begins (remainders, alignment loops);
//   - begins at a count rounded to whole vectors;
//   - is the alternative branch to a packed loop that does the same work
//     (versions for overlapping arrays, edges of tiles);
//   - combines a vector's lanes on the stack.
// Pure. Any bytes are safe, and the work is bounded.
#pragma once

#include <string>
#include <vector>

#include "core/evidence/evidence.h"
#include "profile/code/objdump.h"

namespace kernelpro {

struct AsmMix {
  int instructions = 0;
  int packed_fp = 0;         // packed floating-point arithmetic
  int scalar_fp = 0;         // scalar floating-point arithmetic, x87 included
  int vector_bits = 0;       // widest register of the packed arithmetic; 0 without any
  int streaming_stores = 0;  // movnt*, anywhere in reached code
  int calls = 0;
  int loops = 0;  // 0: no loops; the whole code was counted
  // Estimated fraction of executed instructions in loops of scalar arithmetic; a loop with both
  // kinds counts in proportion. 0 without floating-point arithmetic.
  double scalar_share = 0;
  // A packed loop does the same arithmetic as the counted scalar one; which of them runs is
  // unknown.
  bool packed_version = false;
  std::string text;  // human-readable listing of the hot loops
};

// Sums over the hot loops. Zero instructions if there is no code.
AsmMix hot_mix(const std::vector<AsmFunction>& functions);

// Adds the mix as cpu.asm.hot.* metrics, and the hot loops as text.
void add_mix(const AsmMix& mix, Evidence* evidence);

}  // namespace kernelpro
