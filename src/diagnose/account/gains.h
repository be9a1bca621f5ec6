// SPDX-License-Identifier: Apache-2.0
// Gains as counterfactuals on a kernel's account: speedups of the kernel, at least 1. Elimination
// and occupancy are those of GPA (HPCToolkit, GPUEstimator.cpp). Pure.
#pragma once

#include "core/finding/account.h"

namespace kernelpro {

// B of the time T goes: T / (T - B).
double gain_eliminating(const KernelAccount& kernel, double us);
// More warps per scheduler, each ready as often as now; never below the floor.
// S = [1 - (1 - I)^then] / [1 - (1 - I)^now], with I the fraction of its cycles that a warp issues.
double gain_of_warps(const KernelAccount& kernel, double now, double then);

// All that lies beyond the floor goes, and the rest of the call stays: no change of the kernel can
// gain the call more. `slack`: a factor by which the floor may be beaten; `longer`: one by which
// the kernel may take longer in the call than where it was measured alone.
double most_of_kernel(const Account& account, const KernelAccount& kernel, double slack = 1,
                      double longer = 1);

}  // namespace kernelpro
