// SPDX-License-Identifier: Apache-2.0
// What a call of an evaluated candidate tells about itself: its launch plan, hardware counters and
// program-counter samples, from processes of their own. No verdict depends on it. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "measure/cuda/crew.h"
#include "measure/cuda/forms.h"
#include "measure/cuda/profile.h"
#include "measure/cuda/sampling.h"
#include "measure/cuda/trial.h"

namespace kernelpro {

inline constexpr double kLeaseTimeout = 900;  // seconds to wait for the GPU

class CudaCalls {
 public:
  // All must outlive it.
  CudaCalls(CudaShop& shop, CudaCrew& crew, const ModuleForms& forms)
      : shop_(shop),
        crew_(crew),
        forms_(forms),
        profile_(shop.settings.gpu),
        sampling_(shop.settings.gpu) {}

  // Starts the processes that later calls need. Once the cases are open; `uuid`: of the GPU.
  void start_ahead(const std::string& uuid);
  // Waits until these have their contexts.
  void settle();

  // As the evaluator's functions of the same names (measure/judge/evaluator.h).
  std::optional<CallFacts> facts(const Subject& subject, std::size_t at) const;
  CounterAnswers profile(const Subject& subject, std::size_t at, CounterSet set);
  SampleAnswers sample(const Subject& subject, std::size_t at);

 private:
  // A plan with the place at which its addresses hold.
  struct Known {
    CallFacts call;
    std::uint64_t place = 0;
  };
  std::optional<Known> known(const Subject& subject, std::size_t at) const;
  // Of a host form that this process has not judged. REQUIRES: the lease.
  Result<Known> captured(const Subject& subject, std::size_t at);
  // Runs `collect(state, binary, plan)` while no other process of ours uses the GPU. Not null: why
  // it could not.
  template <class Collect>
  std::optional<Missing> observed(const Subject& subject, std::size_t at, Family family,
                                  Collect collect);

  CudaShop& shop_;
  CudaCrew& crew_;
  const ModuleForms& forms_;
  CudaProfile profile_;
  CudaSampling sampling_;
  std::map<std::string, std::optional<PlacedPlan>> captured_;  // by binary
  std::string uuid_;
};

}  // namespace kernelpro
