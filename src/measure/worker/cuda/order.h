// SPDX-License-Identifier: Apache-2.0
// A launch plan in one of the orders that its edges allow, one step after the other. Pure.
//
// A result that rests on an edge which is not there (a missing event, a wait of so many
// microseconds in its place) is wrong in some of these orders, however well it is timed when the
// branches run side by side.
#pragma once

#include <cstdint>

#include "core/plan/launch_plan.h"

namespace kernelpro {

// The order of a depth-first walk from a random start; `mirrored`, of the same walk with all
// choices turned around. Together they have most steps that no edge orders in both orders: all of
// them, where branches fork and join like brackets. REQUIRES: plan.problem() is "".
LaunchPlan in_some_order(const LaunchPlan& plan, std::uint64_t seed, bool mirrored);

}  // namespace kernelpro
