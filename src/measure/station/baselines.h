// SPDX-License-Identifier: Apache-2.0
// Carries out an order for baselines on this machine: times PyTorch on a task's module. Each method
// runs at the task's precision, on rotating inputs, with a cold L2, in one Python process that is
// restarted if a method crashes it. Results are cached by task, case, GPU, driver and PyTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation/baseline.h"
#include "core/task/task.h"
#include "measure/station/order.h"

namespace kernelpro {

// Where PyTorch runs.
struct BaselinePlace {
  TargetKind target = TargetKind::kCuda;  // cpu: eager alone
  std::string python;                     // as ReferenceSettings::python
  std::string gpu;                        // CUDA_VISIBLE_DEVICES; "" inherits it
  std::string machine;            // identifies GPU and driver in the cache (core/machine/machine.h)
  std::int64_t memory_bytes = 0;  // as ReferenceSettings::memory_bytes
};

// Blocks, for minutes if nothing is cached; the caller must hold the GPU's lease. Fails with
// kBadInput for a task without a Module, with kEnvironment without a usable PyTorch or GPU; a
// failing method reports in its `error`.
Result<std::vector<Baseline>> time_baselines(const Task& task, const Case& c,
                                             const BaselineOrder& order,
                                             const BaselinePlace& place);

}  // namespace kernelpro
