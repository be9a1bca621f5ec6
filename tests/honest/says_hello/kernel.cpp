// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Prints a line, once, and sums in another order.
#include <cstdio>

#include "task.h"

extern "C" void launch(const Args& args) {
  static const bool said = [] {
    std::puts("hello");
    return true;
  }();
  (void)said;
  for (int row = 0; row < ROWS; ++row) {
    float part[16] = {};
    for (int i = COLS - 1; i >= 0; --i) part[i % 16] += args.x[1ll * row * COLS + i];
    float sum = 0;
    for (const float p : part) sum += p;
    args.y[row] = sum;
  }
}
