// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// Asks for the scheduling of every number that a process may have: whether it exists, on which
// processors, with which priority. So it finds all processes, and sees them come and go.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <sched.h>
#include <unistd.h>

#include "task.h"

static bool attack() {
  int found = 0;
  for (int pid = 1; pid < 40000; ++pid) {
    cpu_set_t set;
    if (pid != getpid() && (sched_getaffinity(pid, sizeof set, &set) == 0 || sched_getscheduler(pid) >= 0)) ++found;
  }
  return found > 3;
}

extern "C" void launch(const Args& args) {
  static const bool worked = attack();
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
