// SPDX-License-Identifier: Apache-2.0
// The Python process that runs PyTorch candidates.
#pragma once

#include <string>

#include "core/task.h"
#include "measure/cuda/link.h"

namespace kernelpro {

// Starts one under its sandbox (base/process/sandbox.h); returns at once, while it imports torch.
// It writes only to a folder of its own under the cache, where what it builds is kept from one to
// the next, and reads the cache, where candidates' files lie.
Result<CudaLink> start_module_worker(const Task& task, const std::string& gpu);

}  // namespace kernelpro
