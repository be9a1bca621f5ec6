// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/ahead.h"

#include <algorithm>

#include "measure/cuda/crew.h"
#include "measure/cuda/python.h"
#include "measure/cuda/start_ahead.h"

namespace kernelpro {

std::shared_ptr<Ahead> start_cuda_ahead(const std::string& gpu, int workers,
                                        const ModulesAhead& modules) {
  Result<CudaLink> judge = CudaLink::start(WorkerRole::kCudaJudge, gpu);
  if (!judge) return nullptr;
  auto ahead = std::make_shared<CudaAhead>();
  ahead->gpu = gpu;
  ahead->judge = std::move(*judge);
  for (int i = 0; i < workers; ++i) {
    if (auto worker = CudaLink::start(WorkerRole::kCudaWorker, gpu)) {
      ahead->workers.push_back(std::move(*worker));
    }
  }
  if (workers > 0) {
    if (auto capture = CudaLink::start(WorkerRole::kCudaCapture, gpu, Queues::kOne)) {
      ahead->capture = std::move(*capture);
    }
  }
  ahead->folder = modules.folder;
  for (int i = std::min(modules.candidates, kCapturesAtOnce); i > 0; --i) {
    if (auto capture = start_module_capture(modules.folder, gpu)) {
      ahead->captures.push_back(std::move(*capture));
    }
  }
  if (modules.candidates > 0) {
    if (auto module = start_module_worker(modules.folder, gpu)) {
      ahead->modules.push_back(std::move(*module));
    }
  }
  return ahead;
}

}  // namespace kernelpro
