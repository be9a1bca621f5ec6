// SPDX-License-Identifier: Apache-2.0
// Times a candidate on the cuda target by L2-cold graph replay, turn by turn with the incumbent on
// the same buffers; the outputs of timed replays are compared on the device.
#pragma once

#include <optional>
#include <variant>

#include "base/statistics.h"
#include "core/machine.h"
#include "evaluate/cuda_case.h"

namespace kernelpro {

struct CudaTimingPlan {
  int min_turns = 20;
  int max_turns = 60;
  double budget_s = 1.0;  // of GPU time; slow kernels get fewer turns, at least five
  double min_effect = 0.005;
  double timeout_s = 30;  // of one call
  std::uint64_t seed = 0;
};

struct CudaTimed {
  Timing timing;
  std::optional<Interval> ratio;  // incumbent's time over the candidate's
};

// The worker has both subjects loaded under "candidate" and "incumbent" for this case. An Outcome:
// what went wrong with the candidate.
Result<std::variant<CudaTimed, Outcome>> time_cuda_case(CudaLink& judge, CudaLink& worker,
                                                        const CudaCase& state, bool incumbent,
                                                        const CudaTimingPlan& plan,
                                                        double* max_error);

// What a failed answer of the worker says about the candidate that it ran.
Outcome worker_outcome(const Answer& answer, const std::string& phase);

// The least time that moving the compulsory bytes can take, in microseconds: inputs, and what of
// the outputs cannot stay in L2, over the theoretical bandwidth, less 5 %.
double physical_floor_us(const CudaCase& state, const Machine& machine);

}  // namespace kernelpro
