// SPDX-License-Identifier: Apache-2.0
// Upper bounds on the bytes a kernel writes: a buffer passed to it may be far larger than what it
// stores there. Pure.
#pragma once

#include <map>
#include <string>

#include "core/evidence/evidence.h"
#include "core/plan/launch_plan.h"

namespace kernelpro {

// The most bytes that one launch of a kernel can have written, by mangled name; unknown kernels are
// omitted. The minimum of:
// - the sectors that its stores and atomics touched (counters);
// - its threads x its stores x 16 B, if its code has no loops, calls, atomics or bulk copies;
// - its time at the memory bandwidth; 2.5 times that for what L2 holds.
// `bandwidth`: the memory's, as measured, in bytes/s; 0: unknown.
std::map<std::string, double> most_written(const LaunchPlan& plan,
                                           const std::map<std::string, KernelEvidence>& kernels,
                                           double bandwidth);

}  // namespace kernelpro
