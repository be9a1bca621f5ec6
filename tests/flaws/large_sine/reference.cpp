// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    args.y[i] = sin(static_cast<double>(args.x[i]));
  }
}
