// SPDX-License-Identifier: Apache-2.0
// Times PyTorch on a task's module: the baselines that a kernel has to beat. Each method runs at
// the task's precision, on rotating inputs, with a cold L2, in one Python process that is restarted
// if a method crashes it. Results are cached by task, case, GPU, driver and PyTorch.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation/evaluation.h"
#include "core/task/task.h"

namespace kernelpro {

struct Baseline {
  std::string name;   // "eager", "compile", "max-autotune", "graph" (eager as a CUDA graph)
  Timing timing;      // `method` states what it compares with; samples 0 if it failed
  std::string error;  // why it could not be timed; "" otherwise
};

struct BaselineSettings {
  TargetKind target = TargetKind::kCuda;  // cpu: eager alone
  std::string python;                     // as ReferenceSettings::python
  std::string gpu;                        // CUDA_VISIBLE_DEVICES; "" inherits it
  std::string machine;            // identifies GPU and driver in the cache (core/machine/machine.h)
  double timeout_s = 300;         // per method, including torch.compile
  std::int64_t memory_bytes = 0;  // as ReferenceSettings::memory_bytes
  double seconds = 2;             // of timing per method, at most
  bool compiled = true;           // compile and max-autotune too
  bool cached = true;             // read and write the cache
};

// Blocks, for minutes if nothing is cached; the caller must hold the GPU's lease. Fails with
// kBadInput for a task without a Module, with kEnvironment without a usable PyTorch or GPU; a
// failing method reports in its `error`.
Result<std::vector<Baseline>> measure_baselines(const Task& task, const Case& c,
                                                const BaselineSettings& settings);

std::string baselines_to_json(const std::vector<Baseline>& baselines);
std::vector<Baseline> baselines_from_json(const std::string& json);  // empty if damaged

}  // namespace kernelpro
