// SPDX-License-Identifier: Apache-2.0
// Processes of the cuda evaluator that start before its task is known: making their contexts takes
// as long as a task may take to be described. One thread at a time. A process that died meanwhile
// is told by the evaluator that takes it.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "measure/cuda/link.h"

namespace kernelpro {

struct CudaAhead {
  std::string gpu;  // that they are on, as named to `start_cuda_ahead`
  CudaLink judge;
  std::deque<CudaLink> workers;
  std::optional<CudaLink> capture;
};

}  // namespace kernelpro
