// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * ROWS;
  for (long long i = 0; i < kCount; ++i) {
    double s = 0;
    for (int j = 0; j < COLS; ++j) {
      s += args.x[i * COLS + j];
      args.y[i * COLS + j] = s;
    }
  }
}
