// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    const double v = static_cast<float>(args.x[i]);
    args.y[i] = v / (1.0 + exp(-v));
  }
}
