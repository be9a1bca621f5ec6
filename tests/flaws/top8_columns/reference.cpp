// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    double best[8];
    for (int k = 0; k < 8; ++k) best[k] = -1e300;
    for (int t = 0; t < LENGTH; ++t) {
      double v = args.x[1ll * t * N + i];
      for (int k = 0; k < 8; ++k) {
        if (v > best[k]) {
          const double less = best[k];
          best[k] = v;
          v = less;
        }
      }
    }
    for (int k = 0; k < 8; ++k) args.y[1ll * k * N + i] = best[k];
  }
}
