// SPDX-License-Identifier: Apache-2.0
// What the user can supply when a report is incomplete.
#pragma once

#include <optional>
#include <string>

#include "core/task/dtype.h"
#include "task/open/open_task.h"

namespace kernelpro {

// Completes the evidence of a report: the task's work, and the GPU's capabilities.
struct Theory {
  std::string task;       // folder or PyTorch file; "" = none
  OpenSettings open;      // options for opening it
  std::string case_name;  // "" = the timed case that moves the most bytes
  // Given by hand, in place of a task.
  std::optional<double> bytes;
  std::optional<double> flops;
  std::optional<double> matmul_flops;
  std::optional<DType> dtype;  // of every floating-point input
  std::string device;          // GPU name ("H100"), for a report that lacks it
  int calls = 1;               // how often the report calls the task
  std::string kernel;          // only kernels whose name contains this
  std::string code;            // file with the machine code of the report's kernels; "" = none
  std::string range;           // of a trace: only inside NVTX ranges with this name
};

}  // namespace kernelpro
