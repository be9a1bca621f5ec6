// SPDX-License-Identifier: Apache-2.0
// Program-counter samples of correct candidates of the cuda target: the supervisor's side of the
// role cuda-sampler. One thread at a time. No verdict depends on it: why there are no samples is
// listed in the answers' `missing`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/evidence/samples.h"
#include "core/plan/binary.h"
#include "measure/cuda/case.h"

namespace kernelpro {

class CudaSampling {
 public:
  explicit CudaSampling(std::string gpu) : gpu_(std::move(gpu)) {}

  // Starts the process, which creates its context; does not wait. Does nothing if it runs already
  // or samples are known to be unavailable.
  void start_ahead(const Task& task, const std::vector<CudaCase>& cases);
  // Waits until the process is idle: nothing may run during timing.
  void settle();

  // Samples of one call on set 0, whose outputs and workspace are overwritten. Blocks; kills the
  // process after `timeout_s`. No process may hold the GPU's counters meanwhile.
  SampleAnswers collect(const Task& task, const std::vector<CudaCase>& cases, const CudaCase& state,
                        const Binary& binary, const LaunchPlan& plan, double timeout_s);

 private:
  SampleAnswers ask(const CudaCase& state, const Binary& binary, const LaunchPlan& plan,
                    double timeout_s);

  std::string gpu_;
  std::optional<CudaLink> link_;
  std::optional<Missing> out_of_reach_;  // why there are no samples here
  std::optional<Missing> failed_;        // why the process could not be used last time
};

}  // namespace kernelpro
