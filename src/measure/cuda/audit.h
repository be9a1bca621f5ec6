// SPDX-License-Identifier: Apache-2.0
// The fresh audit of the cuda target: is a kernel as fast on inputs that it has never seen as on
// those that came repeatedly while it was timed?
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "measure/cuda/case.h"
#include "measure/cuda/reference.h"
#include "measure/cuda/timing.h"
#include "measure/cuda/worker.h"

namespace kernelpro {

// Probability that at least `slow_fresh` of `fresh` contents are among the slow ones if fresh and
// known contents are alike (Fisher's exact test, one-sided).
double slow_by_chance(int slow_fresh, int fresh, int slow_known, int known);

// Whether calls on one kind of values take longer than those on another by more than `factor` and
// `slack_us`, beyond chance (0.1 %), although the times of both scatter: a kernel that is slow in
// some calls on purpose hides a few slow ones among them, but not many.
bool slower_beyond_chance(const std::vector<double>& usual_us, const std::vector<double>& other_us,
                          double factor, double slack_us);

struct Freshness {
  bool slower = false;  // on fresh contents, beyond chance
  bool large = false;   // by more than a quarter, in each of at least two rounds
  double known_us = 0;  // median over the timed sets
  double fresh_us = 0;  // median over fresh contents, corrected for slower clocks
};

// Works in rounds. Sets of the rotation get fresh contents in their own memory and are timed in a
// pass like those before, after known contents, which show whether the GPU itself has slowed down.
// Rounds continue while nearly all fresh contents are slow and chance could still explain it.
// Results are compared: an Outcome is the candidate's fault. The sets keep their fresh contents.
// `timed`: of the subject "candidate", as loaded in `worker`.
Result<std::variant<Freshness, Outcome>> audit_fresh(CudaLink& judge, CudaReference& reference,
                                                     CudaWorker& worker, CudaCase& state,
                                                     const CudaTimed& timed,
                                                     const CudaTimingPlan& plan, double* max_error);

}  // namespace kernelpro
