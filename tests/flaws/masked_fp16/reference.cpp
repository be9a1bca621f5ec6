// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    args.y[i] = args.mask[i] ? 2.0 * static_cast<float>(args.x[i]) : 0.0;
  }
}
