// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// One accumulator for thousands of terms, from left to right.
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int row = 0; row < ROWS; ++row) {
    float sum = 0;
    for (int i = 0; i < COLS; ++i) sum += static_cast<float>(args.x[1ll * row * COLS + i]);
    args.y[row] = sum;
  }
}
