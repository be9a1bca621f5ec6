// SPDX-License-Identifier: Apache-2.0
// A task from a PyTorch file: what reference/ described, as tensors and cases.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/module.h"
#include "core/task.h"

namespace kernelpro {

// One size of the module: what the file gave under the dimensions that `description` names.
struct DescribedCase {
  std::string name;
  bool timed = false;
  ModuleDescription description;
};

// REQUIRES: all descriptions are of `source`; at least one is timed. Cases keep their order, small
// ones first. The task's name is the file's without ".py". Precision is fp32, or the half type when
// every floating input has it; the caller may allow TF32. Scratch memory of a case is what the
// module itself holds besides its outputs, and 16 MiB. Fails with kTask when the descriptions
// differ in more than sizes (kinds of tensors that come and go with a size), or break a bound of
// task/load/limits.h.
Result<Task> task_from_module(const std::string& source, const std::string& path,
                              const std::vector<DescribedCase>& cases);

// The name in task.h of a dimension or constant that the file calls `name`: the same, with "_"
// behind it where C++, the CUDA headers or task.h use it already.
std::string header_name(const std::string& name);

}  // namespace kernelpro
