// SPDX-License-Identifier: Apache-2.0
// As a newcomer writes it: without knobs (results/knobless.md).
#include <cmath>
#include "task.h"
extern "C" void launch(const Args& args) {
#pragma omp parallel for
  for (long r = 0; r < ROWS; ++r) {
    const float* x = args.x + r * COLS;
    float* y = args.y + r * COLS;
    float m = x[0];
    for (long c = 1; c < COLS; ++c) m = x[c] > m ? x[c] : m;
    float s = 0;
    for (long c = 0; c < COLS; ++c) {
      y[c] = std::exp(x[c] - m);
      s += y[c];
    }
    for (long c = 0; c < COLS; ++c) y[c] /= s;
  }
}
