// SPDX-License-Identifier: Apache-2.0
// task: chain
// expect: correct
// The task's own kernel. On inputs 64 times as large some results depend on the last digit of the one
// before, by more than the tolerance: no plain fp32 can be sure of them.
#include "task.h"

extern "C" void launch(const Args& args) {
  float y = 0;
  for (int i = 0; i < N; ++i) args.y[i] = y = args.x[i] / (1.5f + y * y);
}
