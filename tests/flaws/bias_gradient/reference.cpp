// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * COLS;
  for (long long i = 0; i < kCount; ++i) {
    double sum = 0;
    for (long long r = 0; r < ROWS; ++r) sum += args.x[r * COLS + i];
    args.y[i] = sum;
  }
}
