// SPDX-License-Identifier: Apache-2.0
// Host code to launch plan, in a process that sees no data.
#pragma once

#include <string>
#include <variant>

#include "base/error.h"
#include "core/binary.h"
#include "core/evaluation.h"

namespace kernelpro {

// Runs `entry` of a host-form binary once under capture, in a process of its own. An Outcome is the
// candidate's fault, an Error the machine's. `gpu`: as EvaluateSettings.
Result<std::variant<LaunchPlan, Outcome>> capture_plan(const Binary& binary,
                                                       const std::string& entry,
                                                       const AddressLayout& layout,
                                                       const std::string& gpu, double timeout_s);

}  // namespace kernelpro
