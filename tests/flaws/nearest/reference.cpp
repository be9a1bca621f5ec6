// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    double best = 1e300;
    for (int c = 0; c < COUNT; ++c) {
      double s = 0;
      for (int k = 0; k < 32; ++k) {
        const double d = static_cast<double>(args.point[static_cast<long long>(k) * N + i]) - args.centroid[c * 32 + k];
        s += d * d;
      }
      best = s < best ? s : best;
    }
    args.y[i] = best;
  }
}
