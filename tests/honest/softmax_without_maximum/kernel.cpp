// SPDX-License-Identifier: Apache-2.0
// task: softmax
// expect: correct
// Leaves out the search for the largest element, unless the sum turns out too large or too small:
// then it begins the row again.
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& args) {
  for (int row = 0; row < ROWS; ++row) {
    const float* x = args.x + 1ll * row * COLS;
    float* y = args.y + 1ll * row * COLS;
    float shift = 0;
    for (int attempt = 0;; ++attempt) {
      float sum = 0;
      for (int i = 0; i < COLS; ++i) sum += y[i] = std::exp(x[i] - shift);
      if ((sum > 1e-3f && sum < 1e30f) || attempt > 0) {
        const float inverse = 1 / sum;
        for (int i = 0; i < COLS; ++i) y[i] *= inverse;
        break;
      }
      shift = x[0];
      for (int i = 0; i < COLS; ++i) shift = x[i] > shift ? x[i] : shift;
    }
  }
}
