// SPDX-License-Identifier: Apache-2.0
// Two references of one task, on the CPU and on the GPU, must agree. Pure.
#pragma once

#include <string>

#include "core/task/mismatch.h"
#include "core/task/task.h"

namespace kernelpro {

// Where the GPU reference's result is out of tolerance of the CPU reference's, as "at [3, 5] 1.5
// and 2.5", or "". `device`: the elements as stored, floating types as doubles. REQUIRES: both have
// output.elements of them.
std::string disagreement(const Shaped& output, const Expected& host, const std::string& device);

}  // namespace kernelpro
