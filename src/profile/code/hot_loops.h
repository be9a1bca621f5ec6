// SPDX-License-Identifier: Apache-2.0
// Which loops of a CPU candidate take the time, and what their instructions do.
//
// Looked at: `launch`, what it calls or takes the address of (OpenMP's outlined functions among
// them), and entry points of std::thread and std::function; not start-up code, not the PLT.
//
// How often a loop runs is estimated from its nesting, call sites included, and from how far one
// iteration steps. A scalar loop does not count where it
//   - goes on where a packed loop ended, or ends where one begins (remainders, alignment loops);
//   - begins at a count that was rounded to whole vectors;
//   - is the other branch of a test that chooses between it and a packed loop that does the same
//     (versions for overlapping arrays, edges of tiles);
//   - puts together a vector's lanes on the stack.
// Pure. Any bytes are safe, and the work is bounded.
#pragma once

#include <string>
#include <vector>

#include "core/evidence.h"
#include "profile/code/objdump.h"

namespace kernelpro {

struct AsmMix {
  int instructions = 0;
  int packed_fp = 0;         // packed floating-point arithmetic
  int scalar_fp = 0;         // scalar floating-point arithmetic, x87 included
  int vector_bits = 0;       // widest register of the packed arithmetic; 0 without any
  int streaming_stores = 0;  // movnt*, anywhere in the code that is reached
  int calls = 0;
  int loops = 0;  // 0: no loop at all, the whole code was counted
  // Estimated part of the executed instructions that are in loops of scalar arithmetic; a loop with
  // both kinds counts in proportion. 0 without floating-point arithmetic.
  double scalar_share = 0;
  // A packed loop does the same arithmetic as the scalar one that counts: which of them runs is not
  // known.
  bool packed_version = false;
  std::string text;  // the hot loops, for people
};

// Sums over the hot loops. Zero instructions when the text holds no code.
AsmMix hot_mix(const std::vector<AsmFunction>& functions);

// The mix as metrics cpu.asm.hot.*, and the hot loops as a text.
void add_mix(const AsmMix& mix, Evidence* evidence);

}  // namespace kernelpro
