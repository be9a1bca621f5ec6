// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (int row = 0; row < ROWS; ++row) {
    const float* x = args.x + 1ll * row * COLS;
    double* y = args.y + 1ll * row * COLS;
    double largest = x[0], sum = 0;
    for (int i = 0; i < COLS; ++i) largest = x[i] > largest ? x[i] : largest;
    for (int i = 0; i < COLS; ++i) sum += y[i] = std::exp(x[i] - largest);
    for (int i = 0; i < COLS; ++i) y[i] /= sum;
  }
}
