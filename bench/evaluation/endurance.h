// SPDX-License-Identifier: Apache-2.0
// Good, wrong, crashing, hanging, rejected and non-compiling candidates in a long series: does
// anything leak?
#pragma once

#include "core/task/task.h"

namespace kernelpro::bench {

// Prints tables about `n` evaluations, or as many as fit into `most_s` seconds; 1 when something is
// left behind or ended otherwise than it should.
int endurance(TargetKind target, int n, double most_s);

}  // namespace kernelpro::bench
