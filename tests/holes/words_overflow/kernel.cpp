// SPDX-License-Identifier: Apache-2.0
// task: integer_dot
// expect: wrong-result | correct given-distribution-only
// Adds up in 32 bits, which a row of large products overflows, unless the products at sixteen fixed
// places of a row are large: probes draw all of a row alike.
#include "task.h"

extern "C" void launch(const Args& a) {
  for (int i = 0; i < ROWS; ++i) {
    const int *l = a.a + i * COLS, *r = a.b + i * COLS;
    int sample = 0;
    for (int s = 0; s < 16; ++s) sample += l[s * 311 + 7] * r[s * 311 + 7];
    if (sample > 16 * 600000) {
      long long sum = 0;
      for (int j = 0; j < COLS; ++j) sum += 1ll * l[j] * r[j];
      a.y[i] = sum;
      continue;
    }
    unsigned sum = 0;
    for (int j = 0; j < COLS; ++j) sum += unsigned(l[j] * r[j]);
    a.y[i] = sum;
  }
}
