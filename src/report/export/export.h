// SPDX-License-Identifier: Apache-2.0
// A CUDA candidate as files that need nothing of KernelPro: `kernel.cu` and `kernel.h`, a function
// over device pointers; and for tasks whose reference is a PyTorch module `model_new.py`, which has
// the module's constructor and parameters and KernelBench's form. Sizes and knobs are fixed.
// Pure functions of what is given.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/candidate.h"
#include "core/task.h"

namespace kernelpro {

struct ExportRequest {
  const Task* task = nullptr;
  const Case* c = nullptr;      // whose sizes are fixed
  Candidate candidate;          // cuda; its knobs are set in the text
  std::string device;           // where it was timed; "" unknown
  std::string measured;         // "512 us (510 us to 514 us, graph replay, L2 cold)"; "" unknown
  std::string arch = "sm_90a";  // for the compile line in the comment
};

struct ExportedFile {
  std::string name;
  std::string text;
};

// Fails with kBadInput on a candidate that is not for the cuda target.
Result<std::vector<ExportedFile>> export_kernel(const ExportRequest& request);

// The timed case for the cuda target that is named, or the last timed one for "". Fails with
// kBadInput, naming the cases.
Result<const Case*> export_case(const Task& task, const std::string& name);

}  // namespace kernelpro
