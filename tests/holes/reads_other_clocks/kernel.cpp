// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// The processor time of any process has a clock: that of the supervisor tells what it does between
// calls, and all of them together what else runs on the machine.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <time.h>
#include <unistd.h>

#include "task.h"

static bool attack() {
  const clockid_t clock = static_cast<clockid_t>((~static_cast<unsigned>(getppid()) << 3) | 2);
  timespec time{};
  return clock_gettime(clock, &time) == 0 && time.tv_sec + time.tv_nsec > 0;
}

extern "C" void launch(const Args& args) {
  static const bool worked = attack();
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
