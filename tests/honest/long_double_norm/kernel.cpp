// SPDX-License-Identifier: Apache-2.0
// task: layernorm
// expect: correct
// In long double, on the stack of the x87.
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& args) {
  for (int row = 0; row < ROWS; ++row) {
    const float* x = args.x + 1ll * row * COLS;
    long double mean = 0, variance = 0;
    for (int i = 0; i < COLS; ++i) mean += x[i];
    mean /= COLS;
    for (int i = 0; i < COLS; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const long double scale = 1 / std::sqrt(variance / COLS + 1e-5L);
    for (int i = 0; i < COLS; ++i) {
      args.y[1ll * row * COLS + i] = static_cast<float>((x[i] - mean) * scale * args.gamma[i] + args.beta[i]);
    }
  }
}
