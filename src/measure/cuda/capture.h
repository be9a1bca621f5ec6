// SPDX-License-Identifier: Apache-2.0
// Turns host code into a launch plan, in a process without access to data.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "core/evaluation/evaluation.h"
#include "core/plan/binary.h"
#include "measure/cuda/case.h"
#include "measure/cuda/link.h"

namespace kernelpro {

// Runs `entry` of a host-form binary once under capture in `link`, a fresh "cuda-capture" process.
// An Outcome is the candidate's fault, an Error the machine's.
Result<std::variant<LaunchPlan, Outcome>> capture_plan_in(CudaLink& link, const Binary& binary,
                                                          const std::string& entry,
                                                          const AddressLayout& layout,
                                                          double timeout_s);
// The same, after which the process ends.
inline Result<std::variant<LaunchPlan, Outcome>> capture_plan(CudaLink link, const Binary& binary,
                                                              const std::string& entry,
                                                              const AddressLayout& layout,
                                                              double timeout_s) {
  return capture_plan_in(link, binary, entry, layout, timeout_s);
}

// Calls the entry once more in a process that has captured it, this time on a stream that nothing
// captures and with the memory of set 0, inputs read-only where the driver can do that. The process
// is gone when this returns. An Outcome: it crashed or hung there; whatever the process says of its
// reasons is the candidate's word.
std::optional<Outcome> call_uncaptured(CudaLink link, const CudaCase& state, double timeout_s);

}  // namespace kernelpro
