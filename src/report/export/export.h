// SPDX-License-Identifier: Apache-2.0
// A compiled candidate as standalone files: `kernel.cu` or `kernel.cpp` and `kernel.h`, a function
// over device or host pointers; and, if the task's reference is a PyTorch module, `model_new.py` in
// KernelBench's form with the module's constructor and parameters. Sizes and knobs are fixed. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/candidate/candidate.h"
#include "core/task/task.h"

namespace kernelpro {

struct ExportRequest {
  const Task* task = nullptr;
  const Case* c = nullptr;      // its sizes are baked in
  Candidate candidate;          // its knobs are set in the text
  std::string device;           // device that it was timed on; "" unknown
  std::string measured;         // "512 us (510 us to 514 us, graph replay, L2 cold)"; "" unknown
  std::string arch = "sm_90a";  // cuda: for the compile line in the comment
};

struct ExportedFile {
  std::string name;
  std::string text;
};

// Fails with kBadInput where the candidate's language needs no export.
Result<std::vector<ExportedFile>> export_kernel(const ExportRequest& request);

// The compiler's arguments, after its name, for an object of the exported kernel: those of
// Architecture::gencode for `arch` where it is known.
std::vector<std::string> export_build(const ExportRequest& request);

// The named case of the target; for "", the one that stands for the task (largest_timed). Fails
// with kBadInput and lists the cases.
Result<const Case*> export_case(const Task& task, TargetKind target, const std::string& name);

}  // namespace kernelpro
