// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    int count[16] = {};
    for (int k = 0; k < LENGTH; ++k) ++count[args.x[static_cast<long long>(k) * N + i] & 15];
    int best = 0;
    for (int k = 1; k < 16; ++k) {
      if (count[k] > count[best]) best = k;
    }
    args.y[i] = best;
  }
}
