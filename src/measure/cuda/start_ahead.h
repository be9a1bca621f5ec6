// SPDX-License-Identifier: Apache-2.0
// Starts processes of the cuda evaluator before its task is known (measure/cuda/ahead.h).
#pragma once

#include <memory>
#include <string>

#include "measure/judge/evaluator.h"

namespace kernelpro {

struct ModulesAhead {
  int candidates = 0;  // PyTorch candidates to come
  std::string folder;  // of the task's file; absolute
};
// `gpu`: UUID or index; "" the first. `workers`: how many processes run native candidates. Returns
// at once; null if none can be started: the evaluator then reports why.
std::shared_ptr<Ahead> start_cuda_ahead(const std::string& gpu, int workers,
                                        const ModulesAhead& modules);

}  // namespace kernelpro
