// SPDX-License-Identifier: Apache-2.0
// The least time that a call can take on a GPU, and how much of its inputs a task really needs.
#pragma once

#include <vector>

#include "core/machine/machine.h"
#include "measure/cuda/case.h"
#include "measure/cuda/reference.h"

namespace kernelpro {

// Microseconds to move the compulsory bytes at the theoretical bandwidth, less 5 %: each input
// times its share of `shares` (by tensor; empty: all of each), and the part of the outputs that
// cannot stay in L2. 0 where the bandwidth is not known.
double physical_floor_us(const CudaCase& state, const Machine& machine,
                         const std::vector<double>& shares = {});

// The same at the measured bandwidth, or the task's FLOPs at the measured rate of the unit that its
// precision allows, whichever is longer. A shorter time is suspicious, not impossible.
double measured_floor_us(const Task& task, const CudaCase& state, const Machine& machine);

// Lower bound (95 %, Clopper and Pearson) on the share of each large input that the result depends
// on: changes 32-byte pieces at random places and recomputes the reference. 1 for small inputs, 0
// for outputs. Overwrites set `spare()`.
Result<std::vector<double>> needed_shares(CudaLink& judge, CudaReference& reference,
                                          CudaCase& state);

// The lower bound for `hits` of `tries`.
double share_at_least(int hits, int tries);

}  // namespace kernelpro
