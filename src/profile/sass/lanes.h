// SPDX-License-Identifier: Apache-2.0
// How the lanes of a warp spread over memory, as far as the code shows. Each register is modeled as
// a per-lane part and a part common to all 32 lanes. The lane is assumed to be threadIdx.x: blocks
// narrower than 32 threads put several rows into a warp, which this does not see.
// Pure; a bounded forward analysis to a fixed point.
#pragma once

#include <vector>

#include "profile/sass/program.h"

namespace kernelpro {

// One memory access of a warp.
struct LaneAccess {
  bool known = false;    // whether the fields below are known
  bool uniform = false;  // one address for all lanes
  // The distance between lanes is known only at run time: each has a row of run-time length.
  bool runtime = false;
  int stride = 0;    // bytes from each lane to the next; 0: varies or unknown
  int granule = 16;  // the widest access that the distances between lanes allow, bytes
  // 32-byte sectors that the warp touches, and the fewest possible for its width. Assumes that the
  // first lane starts a sector; single bytes are rounded to 4-byte words.
  int sectors = 0;
  int fewest_sectors = 0;
  // Shared-memory passes over the fewest possible for the width; 0: unknown.
  int ways = 0;
};

// One entry per instruction of the kernel; unknown for those that access neither global, shared
// nor constant memory.
std::vector<LaneAccess> lane_accesses(const SassFunction& kernel);

}  // namespace kernelpro
