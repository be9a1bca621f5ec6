// SPDX-License-Identifier: Apache-2.0
// For tests: waiting for conditions.
#pragma once

#include <unistd.h>

#include "base/clock.h"

namespace kernelpro {

// Polls until the condition holds. False after a limit that even a busy machine does not need.
template <class Condition>
bool eventually(Condition holds, double limit_s = 120) {
  const double end = real_clock().now_s() + limit_s;
  while (!holds()) {
    if (real_clock().now_s() > end) return false;
    ::usleep(1000);
  }
  return true;
}

}  // namespace kernelpro
