// SPDX-License-Identifier: Apache-2.0
// Two processes that stay from one variant of a source to the next, to find quickly those that are
// no faster than the incumbent. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/evaluation/evaluation.h"
#include "measure/cuda/crew.h"
#include "measure/cuda/trial.h"

namespace kernelpro {

class CudaScreeners {
 public:
  // Both must outlive it.
  CudaScreeners(CudaShop& shop, CudaCrew& crew) : shop_(shop), crew_(crew) {}

  // The verdict on a variant that does not fit the GPU, or that screening finds no faster than its
  // incumbent; nullopt: judge it in full. `queues`: of both. `ready_s`: when the processes were
  // ready, on the real clock; unchanged where there are none. REQUIRES: the lease is held.
  Result<std::optional<Outcome>> screen(const Subject& subject, const Subject& incumbent,
                                        Queues queues, const CudaTimingPlan& plan, double* ready_s);
  // Ends the processes in the background; whether there were any.
  bool dismiss();

 private:
  bool fit(const std::string& incumbent, Queues queues);

  CudaShop& shop_;
  CudaCrew& crew_;
  std::string incumbent_;  // its hash
  Queues queues_ = Queues::kOne;
  std::vector<CudaWorker> pair_;  // for variants, and for the incumbent; empty: there are none
  int screened_ = 0;              // variants, by this pair
};

}  // namespace kernelpro
