// SPDX-License-Identifier: Apache-2.0
// For tests: waiting for conditions, and a timer that other processes do not affect.
#pragma once

#include <unistd.h>

#include <ctime>

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

// CPU time of the calling thread.
inline double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace kernelpro
