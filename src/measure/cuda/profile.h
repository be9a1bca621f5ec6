// SPDX-License-Identifier: Apache-2.0
// Hardware counters of correct candidates of the cuda target: the supervisor's side of the role
// cuda-profiler, and `ncu` where CUPTI cannot be used. One thread at a time. No verdict depends on
// it: counters that could not be read are listed in the answers' `missing`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/evidence/counters.h"
#include "measure/cuda/case.h"

namespace kernelpro {

class CudaProfile {
 public:
  explicit CudaProfile(std::string gpu) : gpu_(std::move(gpu)) {}

  // Starts the process, which creates its context; does not wait. It holds no counters yet: one
  // process at a time can. Does nothing if it runs already or counters are known to be unavailable.
  void start_ahead(const Task& task, const std::vector<CudaCase>& cases);
  // Waits until the process is idle: nothing may run during timing.
  void settle();
  // Frees the GPU's counters for another process, until they are wanted again.
  void release();

  // Counters of one call on set 0, whose outputs and workspace are overwritten. Blocks; kills the
  // process after `timeout_s`. Where CUPTI cannot be used: a report of ncu, if available.
  CounterAnswers collect(const Task& task, const std::vector<CudaCase>& cases,
                         const CudaCase& state, const Binary& binary, const LaunchPlan& plan,
                         CounterSet set, double timeout_s);

 private:
  // Takes the counters and makes a first collection for `set`; false: it could not.
  bool prepare(const Task& task, const std::vector<CudaCase>& cases, CounterSet set);
  CounterAnswers without_cupti(const CudaCase& state, const Binary& binary, const LaunchPlan& plan,
                               CounterSet set);
  CounterAnswers ask(const CudaCase& state, const Binary& binary, const LaunchPlan& plan,
                     CounterSet set, double timeout_s);

  std::string gpu_;
  std::optional<CudaLink> link_;
  CounterSet prepared_ = CounterSet::kOff;
  std::optional<Missing> out_of_reach_;  // why CUPTI cannot be used here
  bool try_ncu_ = true;                  // instead
  std::optional<Missing> failed_;        // why the process could not be used last time
  int without_ = 0;                      // candidates in a row that had no counters
};

// A report of `ncu --csv` on one call in a separate process (role cuda-replay), with the counters
// of the set and fresh inputs. Blocks. Fails with kEnvironment if ncu is missing or
// refuses; the message gives the reason.
Result<std::string> ncu_report(const Binary& binary, const LaunchPlan& plan, const CudaCase& state,
                               CounterSet set, double timeout_s, const std::string& gpu);

}  // namespace kernelpro
