// SPDX-License-Identifier: Apache-2.0
// The definition, in double precision.
#include <algorithm>
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
#pragma omp parallel for
  for (int row = 0; row < ROWS; ++row) {
    const float* x = args.x + 1ll * row * COLS;
    double* y = args.y + 1ll * row * COLS;
    const double largest = *std::max_element(x, x + COLS);
    double sum = 0;
    for (int i = 0; i < COLS; ++i) sum += y[i] = std::exp(x[i] - largest);
    for (int i = 0; i < COLS; ++i) y[i] /= sum;
  }
}
