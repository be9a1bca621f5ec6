// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * B * MAP;
  for (long long i = 0; i < kCount; ++i) {
    const long long j = i % MAP;
    args.y[i] = static_cast<double>(args.x[i]) * args.scale[j] + args.shift[j];
  }
}
