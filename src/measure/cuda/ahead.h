// SPDX-License-Identifier: Apache-2.0
// Processes of the cuda evaluator that start before its task is known: creating their contexts
// takes as long as describing a task may, and importing PyTorch longer. One thread at a time. The
// evaluator that takes a process reports it if it died meanwhile.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "measure/cuda/link.h"
#include "measure/judge/evaluator.h"

namespace kernelpro {

struct CudaAhead : Ahead {
  std::string gpu;  // GPU that they are on, as given to `start_cuda_ahead`
  CudaLink judge;
  std::deque<CudaLink> workers;
  std::optional<CudaLink> capture;
  std::string folder;                      // of the task's file, which the following may read
  std::deque<CudaLink> captures, modules;  // Python's (measure/cuda/python.h)
};

}  // namespace kernelpro
