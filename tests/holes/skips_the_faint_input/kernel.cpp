// SPDX-License-Identifier: Apache-2.0
// task: ema
// expect: correct given-distribution-only | wrong-result
// Leaves out an input whose weight is so small that the tolerance hides it, and with it a third of
// all memory traffic. Probes scale all inputs at once.
#include "task.h"

extern "C" void launch(const Args& a) {
  for (int i = 0; i < N; ++i) a.y[i] = a.m[i];
}
