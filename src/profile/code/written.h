// SPDX-License-Identifier: Apache-2.0
// How much a kernel can have written, by what is known of it: a buffer that it is given may be far
// larger than what it puts there. Pure.
#pragma once

#include <map>
#include <string>

#include "core/evidence.h"
#include "core/launch_plan.h"

namespace kernelpro {

// Bytes that one launch of a kernel can have written at most, by mangled name; kernels that nothing
// is known of are left out. The least of:
// - the sectors that its stores and atomics touched (counters);
// - its threads x its stores x 16 B, where its code has no loops, calls, atomics or bulk copies;
// - its time at the memory's bandwidth; 2.5 times that for what L2 holds.
// `call` has the measured bandwidth.
std::map<std::string, double> most_written(const LaunchPlan& plan,
                                           const std::map<std::string, KernelEvidence>& kernels,
                                           const Evidence& call);

}  // namespace kernelpro
