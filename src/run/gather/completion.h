// SPDX-License-Identifier: Apache-2.0
// What a report lacks, as its user can name it.
#pragma once

#include <optional>
#include <string>

#include "task/open/open_task.h"

namespace kernelpro {

// What the evidence of a report lacks: what the work asks for, and what the GPU can do.
struct Theory {
  std::string task;       // folder or PyTorch file; "" = none
  OpenSettings open;      // for it
  std::string case_name;  // "" = the timed case that moves most bytes
  // By hand, instead of a task.
  std::optional<double> bytes;
  std::optional<double> flops;
  std::optional<double> matmul_flops;
  std::string dtype;   // "fp16": of every floating-point input
  std::string device;  // name of the GPU, "H100", when the report does not say
  int calls = 1;       // calls of the task in the report
  std::string kernel;  // only kernels with this in their name
  std::string code;    // file with the machine code of a report's kernels; "" = none
  std::string range;   // of a trace: only within NVTX ranges of this name
};

}  // namespace kernelpro
