// SPDX-License-Identifier: Apache-2.0
// What is chosen for a new run when nobody says: where it runs and which folder it gets.
#pragma once

#include <string>

#include "core/task.h"

namespace kernelpro {

// "auto" is cuda when this machine can use it and the task has a kernel for it, else cpu.
TargetKind choose_target(const Task& task, const std::string& name);
// FOLDER/<task>-<target>-<UTC time>, with a counter when that exists.
std::string new_run_directory(const Task& task, TargetKind target,
                              const std::string& folder = "runs");

}  // namespace kernelpro
