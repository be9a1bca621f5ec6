// SPDX-License-Identifier: Apache-2.0
// The least time that a call can take on a GPU, and what of its inputs a task really needs.
#pragma once

#include <vector>

#include "core/machine.h"
#include "measure/cuda/case.h"
#include "measure/cuda/reference.h"

namespace kernelpro {

// Microseconds to move the compulsory bytes at the theoretical bandwidth, less 5 %: inputs, each
// counted by its share of `shares` (by tensor; empty: all of each), and what of the outputs cannot
// stay in L2. 0 where the bandwidth is not known.
double physical_floor_us(const CudaCase& state, const Machine& machine,
                         const std::vector<double>& shares = {});

// The same at the measured bandwidth, or the task's FLOPs at the measured rate of the unit that its
// precision allows, whichever is longer: a claim to be looked at twice, not an impossible one.
double measured_floor_us(const Task& task, const CudaCase& state, const Machine& machine);

// The share of each large input that the result depends on, at least so much (95 %, Clopper and
// Pearson): 32-byte pieces at random places are changed and the reference computed again. 1 for
// small inputs, 0 for outputs. Spoils set `spare()`.
Result<std::vector<double>> needed_shares(CudaLink& judge, CudaReference& reference,
                                          CudaCase& state, std::uint64_t seed);

// The lower end for `hits` of `tries`.
double share_at_least(int hits, int tries);

}  // namespace kernelpro
