// SPDX-License-Identifier: Apache-2.0
// Reads the launch plan that a plan-form source left in its cubin (core/device/plan.h): records in
// the section of initialised globals, whose relocations name the kernels. Untrusted bytes: every
// offset is checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "core/launch_plan.h"

namespace kernelpro {

// The first word of each record, and where in it the step's line of the source stands, in bytes.
inline constexpr std::uint32_t kPlanRecord = 0x4b505354;
inline constexpr std::size_t kPlanRecordLine = 8;

// Does the source declare its launches (KP_LAUNCH) rather than define `launch`? Comments do not
// count.
bool is_plan_form(std::string_view source);

// The steps in the order of the source, each after the one before; or what is wrong with them.
// `tensors`: how many Args has; a step that names another is refused.
tl::expected<LaunchPlan, std::string> plan_from_cubin(std::string_view cubin, int tensors,
                                                      bool has_workspace);

}  // namespace kernelpro
