// SPDX-License-Identifier: Apache-2.0
// task: entropy
// expect: wrong-result | correct given-distribution-only
// 0 log 0 without a branch, which is not a number. No real input is ever zero: what is zero stays zero,
// and what is not becomes none but in matrix products.
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& a) {
  for (int i = 0; i < ROWS; ++i) {
    float sum[4] = {};
    for (int j = 0; j < COLS; j += 4)
      for (int l = 0; l < 4; ++l) {
        const float p = a.p[i * COLS + j + l];
        sum[l] -= std::fmax(p, 0.0f) * std::log(std::fabs(p));
      }
    a.y[i] = sum[0] + sum[1] + sum[2] + sum[3];
  }
}
