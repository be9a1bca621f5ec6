// SPDX-License-Identifier: Apache-2.0
// What the role cuda-replay runs: one call of a plan over memory of its own, for tools that watch a
// whole process (compute-sanitizer, ncu).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/binary.h"
#include "core/launch_plan.h"
#include "core/protocol.h"

namespace kernelpro {

// The file that the role takes. Inputs are drawn from `seed` as `tensors` say.
Result<void> write_replay(const std::string& path, const Binary& binary, const LaunchPlan& plan,
                          const AddressLayout& layout, const std::vector<JudgeTensor>& tensors,
                          std::uint64_t seed);

}  // namespace kernelpro
