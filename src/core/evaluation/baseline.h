// SPDX-License-Identifier: Apache-2.0
// How long PyTorch itself takes for a task's module, by one of its methods: the times that a kernel
// has to beat.
#pragma once

#include <string>
#include <vector>

#include "core/evaluation/evaluation.h"

namespace kernelpro {

struct Baseline {
  std::string name;   // "eager", "compile", "max-autotune", "graph" (eager as a CUDA graph)
  Timing timing;      // `method` states what it compares with; samples 0 if it failed
  std::string error;  // why it could not be timed; "" otherwise
};

std::string baselines_to_json(const std::vector<Baseline>& baselines);
std::vector<Baseline> baselines_from_json(const std::string& json);  // empty if damaged

}  // namespace kernelpro
