// SPDX-License-Identifier: Apache-2.0
// Input of the role cuda-replay: one call of a plan over its own memory, for tools that watch a
// whole process (compute-sanitizer, ncu).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/plan/binary.h"
#include "core/plan/launch_plan.h"
#include "core/plan/protocol.h"
#include "core/task/key.h"

namespace kernelpro {

// Writes the file that the role reads. Inputs are drawn as `tensors` specify, under `key`.
Result<void> write_replay(const std::string& path, const Binary& binary, const LaunchPlan& plan,
                          const AddressLayout& layout, const std::vector<JudgeTensor>& tensors,
                          const kp::Key& key = fresh_key());

}  // namespace kernelpro
