// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * ROWS * COLS;
  for (long long i = 0; i < kCount; ++i) {
    args.y[i] = static_cast<float>(args.x[i % ROWS * COLS + i / ROWS]);
  }
}
