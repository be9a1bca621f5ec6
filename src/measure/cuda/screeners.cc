// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/screeners.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace kernelpro {

namespace {

constexpr int kMostScreened = 32;  // by a pair of processes, whose difference stays

}  // namespace

bool CudaScreeners::dismiss() {
  const bool any = !pair_.empty();
  for (CudaWorker& worker : pair_) crew_.retire(std::move(worker.link));
  pair_.clear();
  screened_ = 0;
  return any;
}

bool CudaScreeners::fit(const std::string& incumbent, Queues queues) {
  return incumbent_ == incumbent && queues_ == queues && screened_ < kMostScreened &&
         std::ranges::all_of(pair_, [](CudaWorker& worker) { return worker.link.running(); });
}

// The processes stay because contexts are what the driver creates most slowly
// (results/contexts.md).
Result<std::optional<Outcome>> CudaScreeners::screen(const Subject& subject,
                                                     const Subject& incumbent, Queues queues,
                                                     const CudaTimingPlan& plan, double* ready_s) {
  if (!fit(incumbent.hash, queues)) dismiss();
  crew_.wait_for_leaving();  // no process starts or exits during timing
  crew_.settle();
  if (pair_.empty()) {
    crew_.expect_native(2);
    auto taken = crew_.take_native(2, queues);
    if (!taken) return std::optional<Outcome>();  // memory for two more, perhaps
    pair_ = std::move(*taken);
    incumbent_ = incumbent.hash;
    queues_ = queues;
  }
  *ready_s = real_clock().now_s();
  CudaTrial trial(shop_, pair_[0], &pair_[1], plan);
  Result<CudaTrial::Screened> found = trial.screen(subject, incumbent);
  if (!found || *found == CudaTrial::Screened::kFailed) dismiss();
  if (!found) return tl::unexpected<Error>(std::move(found.error()));
  if (*found == CudaTrial::Screened::kFailed) {
    crew_.wait_for_leaving();
    for (CudaCase& state : shop_.cases) KP_TRY(forget_broken_sets(shop_.judge, state));
    return std::optional<Outcome>();
  }
  ++screened_;
  if (*found == CudaTrial::Screened::kPerhapsAhead) return std::optional<Outcome>();
  return std::optional<Outcome>(trial.verdict());
}

}  // namespace kernelpro
