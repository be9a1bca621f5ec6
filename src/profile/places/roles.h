// SPDX-License-Identifier: Apache-2.0
// The roles of a kernel's warps: producers and consumers run other code from some branch to their
// end. How much of its time each role waits for the others tells which of them sets the pace, which
// the kernel's stalls together do not. Pure; any code is safe.
#pragma once

#include <map>
#include <vector>

#include "core/evidence/places.h"
#include "profile/places/control_flow.h"
#include "profile/places/estimate.h"

namespace kernelpro {

// `samples`: of the whole kernel, by instruction and stall. In code order, without the
// lines' texts. Empty where all warps run the same code, where there are more than kMostRoles
// roles, or where the code has no lines.
std::vector<WarpRole> warp_roles(const SassFunction& function, const std::vector<Flow>& flow,
                                 const ControlFlow& control, const std::vector<WaitAt>& samples);

// Where a kernel has roles: takes away the samples of warps that wait for their block's end at a
// barrier behind all loops and all work. They have nothing to do, and what the others wait for
// takes the time; of the cycles without an issue, those others have all. `stalls`: of the same
// samples, and of those outside the code.
void leave_out_idle_warps(const SassFunction& function, const std::vector<Flow>& flow,
                          const ControlFlow& control, std::vector<WaitAt>* samples,
                          std::map<Stall, StallShare>* stalls);

}  // namespace kernelpro
