// SPDX-License-Identifier: Apache-2.0
// task: chain
// truth: vectorised=no threads=one
// Each result waits for the one before.
#include "task.h"

extern "C" void launch(const Args& args) {
  float y = 0;
  for (int i = 0; i < N; ++i) args.y[i] = y = args.x[i] / (1.5f + y * y);
}
