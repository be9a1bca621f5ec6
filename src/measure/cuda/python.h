// SPDX-License-Identifier: Apache-2.0
// The Python processes that run PyTorch candidates.
#pragma once

#include <string>

#include "measure/cuda/link.h"

namespace kernelpro {

// Starts one in its sandbox (base/process/sandbox.h); returns at once, while it imports torch: its
// first answer is that it has. Its context is created with the first command that needs one, since
// most candidates have a plan. It can read `folder`, that of the task's file ("": none), and
// read and write a folder of its own, which goes with it: candidates find neither each other's
// files nor each other's builds.
Result<CudaLink> start_module_worker(const std::string& folder, const std::string& gpu);

// The same without data, for a candidate's launch plan (measure/cuda/module_plan.h). It creates its
// context at once.
Result<CudaLink> start_module_capture(const std::string& folder, const std::string& gpu);

}  // namespace kernelpro
