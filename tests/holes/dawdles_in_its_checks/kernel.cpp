// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: crashed | rejected
// Sleeps for eight seconds in each call of a check or a probe, which may take more, and there are up
// to twenty. Where it is timed, which begins with one set of inputs over and over, it is as fast as
// any: nobody sees why the evaluation took minutes.
#include <time.h>

#include "task.h"

extern "C" void launch(const Args& args) {
  static int calls = 0;
  static float before = -1;
  static bool timed = false;
  timed = timed || args.x[N / 2] == before;
  before = args.x[N / 2];
  for (int i = 0; i < N; ++i) args.y[i] = args.x[i] > 0 ? args.x[i] : 0;
  if (timed || ++calls == 1 || calls > 24) return;
  const timespec a_while{8, 0};
  nanosleep(&a_while, nullptr);
}
