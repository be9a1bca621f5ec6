// SPDX-License-Identifier: Apache-2.0
// How the lanes of a warp spread over memory, where the code tells: every register as what differs
// between the 32 lanes, and a part that they have in common. The lane is taken to be threadIdx.x; a
// block narrower than 32 threads has several rows in a warp, which is not seen here.
// Pure; a forward analysis to a fixed point, bounded.
#pragma once

#include <vector>

#include "profile/sass/program.h"

namespace kernelpro {

// One memory access of a warp.
struct LaneAccess {
  bool known = false;    // what follows
  bool uniform = false;  // one address for all lanes
  // Lanes lie apart by a number that only the run tells: a row of run-time length for each.
  bool runtime = false;
  int stride = 0;    // bytes from each lane to the next; 0: not the same for all, or unknown
  int granule = 16;  // the widest access that all lanes' distances allow, bytes
  // 32-byte sectors that the warp touches, and the fewest for its width; the first lane taken to
  // start a sector. Bytes are taken as parts of words of four.
  int sectors = 0;
  int fewest_sectors = 0;
  // Passes that shared memory needs, over the fewest for the width; 0: not known.
  int ways = 0;
};

// Of each instruction of the kernel; unknown for those that access neither global, shared nor
// constant memory.
std::vector<LaneAccess> lane_accesses(const SassFunction& kernel);

}  // namespace kernelpro
