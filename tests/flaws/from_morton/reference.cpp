// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * SIZE * SIZE * SIZE;
  for (long long i = 0; i < kCount; ++i) {
    const long long u = i % SIZE, v = i / SIZE % SIZE, w = i / SIZE / SIZE;
    long long at = 0;
    for (int b = 0; b < 16; ++b) {
      at |= (u >> b & 1) << 3 * b | (v >> b & 1) << (3 * b + 1) | (w >> b & 1) << (3 * b + 2);
    }
    args.y[i] = args.x[at];
  }
}
