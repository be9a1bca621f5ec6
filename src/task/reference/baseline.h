// SPDX-License-Identifier: Apache-2.0
// How fast PyTorch is on a task's module by itself: what a kernel has to beat. Each method at the
// task's precision, on inputs that rotate, L2 cold; one Python process, which is replaced where a
// method takes it down. Results are cached by task, case, GPU, driver and PyTorch.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation.h"
#include "core/task.h"

namespace kernelpro {

struct Baseline {
  std::string name;   // "eager", "compile", "max-autotune", "graph" (eager as a CUDA graph)
  Timing timing;      // its method says what it may be compared with; samples 0 when it failed
  std::string error;  // why there is no time; "" otherwise
};

struct BaselineSettings {
  TargetKind target = TargetKind::kCuda;  // cpu: eager alone
  std::string python;                     // as ReferenceSettings::python
  std::string gpu;                        // CUDA_VISIBLE_DEVICES; "" leaves it alone
  std::string machine;                    // names GPU and driver in the cache (core/machine.h)
  double timeout_s = 300;                 // for one method, torch.compile's work included
  std::int64_t memory_bytes = 0;          // as ReferenceSettings::memory_bytes
  double seconds = 2;                     // of timing for one method, at most
  bool compiled = true;                   // compile and max-autotune too
  bool cached = true;                     // read and write the cache
};

// Blocks, up to minutes where nothing is cached; the caller holds the GPU's lease meanwhile. Fails
// with kBadInput for a task without a Module, with kEnvironment when there is no usable PyTorch or
// GPU; what a method does wrong is in its `error`.
Result<std::vector<Baseline>> measure_baselines(const Task& task, const Case& c,
                                                const BaselineSettings& settings);

std::string baselines_to_json(const std::vector<Baseline>& baselines);
std::vector<Baseline> baselines_from_json(const std::string& json);  // empty when damaged

}  // namespace kernelpro
