// SPDX-License-Identifier: Apache-2.0
// Reads the launch plan in a plan-form source's cubin (core/device/plan.h): records in the section
// of initialized globals, whose relocations name the kernels. Untrusted bytes: every offset is
// checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "core/plan/launch_plan.h"

namespace kernelpro {

// First word of each record, and the byte offset in it of the step's source line.
inline constexpr std::uint32_t kPlanRecord = 0x4b505354;
inline constexpr std::size_t kPlanRecordLine = 8;

// Whether the source declares its launches (KP_LAUNCH) rather than defining `launch`. Ignores
// comments.
bool is_plan_form(std::string_view source);

// The steps in source order, each dependent on the previous one; or the error in them. `tensors`:
// the number in Args; a step that uses any other is refused.
tl::expected<LaunchPlan, std::string> plan_from_cubin(std::string_view cubin, int tensors,
                                                      bool has_workspace);

}  // namespace kernelpro
