// SPDX-License-Identifier: Apache-2.0
// Turns the description of a PyTorch file by reference/ into a task's tensors and cases.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/task/module.h"
#include "core/task/task.h"

namespace kernelpro {

// The module at one size, given by the dimensions in `description`.
struct DescribedCase {
  std::string name;
  bool timed = false;
  ModuleDescription description;
};

// REQUIRES: all descriptions are of `source`; at least one is timed. Cases keep their order, small
// ones first. The task's name is the file's without ".py". Precision is fp32, or a half type if
// every floating input has it; the caller may allow TF32. A case's scratch memory is the module's
// own intermediates plus 16 MiB. Fails with kTask if descriptions differ in more than sizes
// (tensors that exist only at some sizes), or exceed a bound of task/load/limits.h.
Result<Task> task_from_module(const std::string& source, const std::string& path,
                              const std::vector<DescribedCase>& cases);

// The task.h name of the file's dimension or constant `name`: unchanged, or with "_" appended if
// C++, the CUDA headers or task.h already use it.
std::string header_name(const std::string& name);

}  // namespace kernelpro
