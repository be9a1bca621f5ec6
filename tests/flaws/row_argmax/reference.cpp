// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * ROWS;
  for (long long i = 0; i < kCount; ++i) {
    long long best = 0;
    for (long long j = 1; j < COLS; ++j) {
      if (args.x[i * COLS + j] > args.x[i * COLS + best]) best = j;
    }
    args.y[i] = static_cast<int>(best);
  }
}
