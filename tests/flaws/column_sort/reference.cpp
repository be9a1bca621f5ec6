// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    double v[64];
    for (int k = 0; k < 64; ++k) {
      const double w = args.x[static_cast<long long>(k) * N + i];
      int at = k;
      for (; at > 0 && v[at - 1] > w; --at) v[at] = v[at - 1];
      v[at] = w;
    }
    for (int k = 0; k < 64; ++k) args.y[static_cast<long long>(k) * N + i] = v[k];
  }
}
