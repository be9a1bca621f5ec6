// SPDX-License-Identifier: Apache-2.0
// Defaults for a new run: which target, which folder.
#pragma once

#include <string>

#include "core/task/task.h"
#include "measure/remote/stations.h"

namespace kernelpro {

// "auto" means cuda if this machine can use it and the task has a kernel for it, else cpu.
TargetKind choose_target(const Task& task, const std::string& name);
// The same where there is no task yet: a PyTorch module gets its kernel on either target.
TargetKind choose_target(const std::string& name);
// The same on another machine; `task`: null where there is none yet. Fails as Host::has_cuda does.
Result<TargetKind> choose_target(const Host& host, const Task* task, const std::string& name);
// Makes FOLDER/<task>-<target>-<UTC time>, with a counter if that exists, so that no other run
// takes it. Where it cannot be made, the name is returned all the same: whoever opens it will say
// why.
std::string new_run_directory(const Task& task, TargetKind target,
                              const std::string& folder = "runs");
// The same where the task is not open: FOLDER/<name>-<UTC time>.
std::string new_run_directory(const std::string& name, const std::string& folder);
// Removes it again if the run left nothing in it.
void drop_run_directory(const std::string& directory);

}  // namespace kernelpro
