// SPDX-License-Identifier: Apache-2.0
// Turns host code into a launch plan, in a process without access to data.
#pragma once

#include <string>
#include <variant>

#include "base/error.h"
#include "core/binary.h"
#include "core/evaluation.h"
#include "measure/cuda/link.h"

namespace kernelpro {

// Runs `entry` of a host-form binary once under capture in `link`, a fresh "cuda-capture" process.
// An Outcome is the candidate's fault, an Error the machine's.
Result<std::variant<LaunchPlan, Outcome>> capture_plan(CudaLink link, const Binary& binary,
                                                       const std::string& entry,
                                                       const AddressLayout& layout,
                                                       double timeout_s);

}  // namespace kernelpro
