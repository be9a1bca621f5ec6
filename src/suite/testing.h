// SPDX-License-Identifier: Apache-2.0
// For this room's tests and bench_suite_kill: tasks for the cpu target that build and run fast.
#pragma once

#include <string>

#include "core/testing/toy_task.h"

namespace kernelpro::testing {

// Writes a task folder: y = FACTOR x, with a kernel whose four knobs change only the text.
inline Result<void> write_scale_task(const std::string& folder, int factor, int n = 1000) {
  return write_toy_task(folder, {{"small", n, "timed"}}, factor, toy_knobbed_kernel(factor));
}

}  // namespace kernelpro::testing
