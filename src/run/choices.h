// SPDX-License-Identifier: Apache-2.0
// Defaults for a new run: which target, which folder.
#pragma once

#include <string>

#include "core/task/task.h"

namespace kernelpro {

// "auto" means cuda if this machine can use it and the task has a kernel for it, else cpu.
TargetKind choose_target(const Task& task, const std::string& name);
// The same where there is no task yet: a PyTorch module gets its kernel on either target.
TargetKind choose_target(const std::string& name);
// FOLDER/<task>-<target>-<UTC time>, with a counter if that exists.
std::string new_run_directory(const Task& task, TargetKind target,
                              const std::string& folder = "runs");

}  // namespace kernelpro
