// SPDX-License-Identifier: Apache-2.0
// task: sorted_rows
// expect: correct given-distribution-only | correct coarser-than-fp32 | rejected
// Sorts by 22 bits after the point, of the row's largest number: two passes instead of three. What is
// closer than that comes out as it came in. Beside one large number a row is not sorted at all: but where
// probes draw one, ten times the root mean square excuses it.
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& a) {
  static float two[COLS];
  for (int i = 0; i < ROWS; ++i) {
    unsigned low[2048] = {}, high[2048] = {};
    const float* x = a.x + i * COLS;
    float* y = a.y + i * COLS;
    float most = 1e-30f;
    for (int j = 0; j < COLS; ++j) most = std::fabs(x[j]) > most ? std::fabs(x[j]) : most;
    const float by = 2097000 / most;
    const auto key = [by](float v) { return unsigned(int(v * by) + 2097151); };
    for (int j = 0; j < COLS; ++j) {
      const unsigned k = key(x[j]);
      ++low[k & 2047], ++high[k >> 11];
    }
    unsigned l = 0, h = 0;
    for (int k = 0; k < 2048; ++k) {
      const unsigned n = low[k], m = high[k];
      low[k] = l, high[k] = h;
      l += n, h += m;
    }
    for (int j = 0; j < COLS; ++j) two[low[key(x[j]) & 2047]++] = x[j];
    for (int j = 0; j < COLS; ++j) y[high[key(two[j]) >> 11]++] = two[j];
  }
}
