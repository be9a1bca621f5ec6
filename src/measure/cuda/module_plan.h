// SPDX-License-Identifier: Apache-2.0
// From a PyTorch candidate to its launch plan, through a process that has no data. See
// docs/launch-plan.md.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/evidence/operators.h"
#include "core/plan/binary.h"
#include "core/task/policy.h"
#include "measure/cuda/case.h"
#include "measure/cuda/link.h"

namespace kernelpro {

// A candidate that cannot become a plan runs in host form: its process holds the data and the
// clock.
struct HostForm {
  std::string reason;  // why, one sentence
  double late_s = 0;   // its capture was ended after so many seconds
};
struct ModulePlan {
  LaunchPlan plan;
  std::uint64_t place = 0;              // where the addresses in it hold
  std::vector<std::string> images;      // paths of its cubins, in our cache
  std::vector<std::string> notes;       // for the verdict
  std::vector<OperatorCall> operators;  // those that launch its nodes; empty: unknown
};
using ModuleForm = std::variant<ModulePlan, HostForm>;

// Captures a module's call in `link`, a process of start_module_capture (measure/cuda/python.h)
// that has captured only the same candidate before. `place`: of the case's buffers
// (core/plan/launch_plan.h). Building it may take `timeout_s`, less if it
// waits or compiles nothing (CudaLink::ask_while_busy).
ModuleForm capture_module(CudaLink& link, const CudaCase& state, std::uint64_t place,
                          const Task& task, Policy policy, const Binary& binary, double timeout_s);

// What the process answered, of which nothing is believed: the files that it names go into our
// cache under their hashes. `folder`: a descriptor of the folder that they are in, opened before
// the process got its name.
ModuleForm module_form(const Json& answer, const AddressLayout& layout, int folder);

}  // namespace kernelpro
