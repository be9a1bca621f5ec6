// SPDX-License-Identifier: Apache-2.0
// Hardware counters of correct candidates of the cuda target: the supervisor's side of the role
// cuda-profiler, and `ncu` where CUPTI cannot be used. One thread at a time. A verdict never
// depends on it: what could not be had is in the answers' `missing`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/counters.h"
#include "measure/cuda/case.h"

namespace kernelpro {

class CudaProfile {
 public:
  explicit CudaProfile(std::string gpu) : gpu_(std::move(gpu)) {}

  // Starts the process and lets it make its context and its first collection for `set`, without
  // waiting. Nothing if it runs already, or if counters were found to be out of reach.
  void start_ahead(const Task& task, const std::vector<CudaCase>& cases, CounterSet set);
  // Waits until the process is idle: nothing may run beside what is timed.
  void settle();

  // Counters of one call on set 0. The case's outputs and workspace are overwritten there. Blocks;
  // ends the process after `timeout_s`. Where CUPTI cannot be used: a report of ncu, if that can.
  CounterAnswers collect(const Task& task, const std::vector<CudaCase>& cases,
                         const CudaCase& state, const Binary& binary, const LaunchPlan& plan,
                         CounterSet set, double timeout_s);

 private:
  CounterAnswers without_cupti(const CudaCase& state, const Binary& binary, const LaunchPlan& plan,
                               CounterSet set);
  CounterAnswers ask(const CudaCase& state, const Binary& binary, const LaunchPlan& plan,
                     CounterSet set, double timeout_s);

  std::string gpu_;
  std::optional<CudaLink> link_;
  CounterSet prepared_ = CounterSet::kOff;
  std::optional<Missing> out_of_reach_;  // why CUPTI cannot be used here
  bool try_ncu_ = true;                  // then
  std::optional<Missing> failed_;        // why the process could not be used the last time
};

// A report of `ncu --csv` over one call in a process of its own (role cuda-replay), with the
// counters of the set and inputs drawn from `seed`. Blocks. Fails with kEnvironment without ncu, or
// when ncu refuses; the message says why.
Result<std::string> ncu_report(const Binary& binary, const LaunchPlan& plan, const CudaCase& state,
                               CounterSet set, std::uint64_t seed, double timeout_s,
                               const std::string& gpu);

}  // namespace kernelpro
