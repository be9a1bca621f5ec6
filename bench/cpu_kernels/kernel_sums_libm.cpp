// SPDX-License-Identifier: Apache-2.0
// task: kernel_sums
// truth: vectorised=no threads=all
// One call of libm for each element, on all threads.
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& args) {
#pragma omp parallel for
  for (int row = 0; row < ROWS; ++row) {
    const float* x = args.x + row * COLS;
    float even = 0, odd = 0;
    int j = 0;
    for (; j + 2 <= COLS; j += 2) {
      even += std::exp(x[j]);
      odd += std::exp(x[j + 1]);
    }
    if (j < COLS) even += std::exp(x[j]);
    args.y[row] = even + odd;
  }
}
