// SPDX-License-Identifier: Apache-2.0
// The files of a launch plan that a supervisor asks to load. For .cc files only (JSON).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/plan/launch_plan.h"
#include "measure/worker/cuda/message.h"

namespace kernelpro {

struct PlanFiles {
  std::vector<std::string> images;     // by number; one cubin of a native candidate
  std::vector<std::string> constants;  // contents of the plan's
};

// Reads what "images" or else "cubin" of the command name, and the plan's constants.
Result<PlanFiles> plan_files(const WorkerCommand& command, const LaunchPlan& plan);

}  // namespace kernelpro
