// SPDX-License-Identifier: Apache-2.0
// Where a warp waits, guessed from machine code alone: each loop body and the code around the loops
// are issued in order by their control codes, with the typical latencies of sass/opcodes.h. Loops
// count sixteen times what surrounds them. What other warps do (full queues, late arrivals) is not
// modelled. Pure, linear in the code's length.
#pragma once

#include <vector>

#include "core/evidence/stall.h"
#include "profile/sass/loops.h"

namespace kernelpro {

struct WaitAt {
  int instruction = 0;
  Stall stall = Stall::kSelected;  // kSelected: it issues
  double all = 0;                  // samples; estimated: cycles of one warp
  double exposed = 0;
};

std::vector<WaitAt> estimated_waits(const SassFunction& function, const HotCode& hot);

}  // namespace kernelpro
