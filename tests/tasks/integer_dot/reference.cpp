// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  for (int i = 0; i < ROWS; ++i) {
    long long sum = 0;
    for (int j = 0; j < COLS; ++j) sum += 1ll * a.a[i * COLS + j] * a.b[i * COLS + j];
    a.y[i] = sum;
  }
}
