// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * static_cast<long long>(N) * WIDTH;
  for (long long i = 0; i < kCount; ++i) {
    args.y[i] = static_cast<float>(
        args.table[static_cast<long long>(args.index[i / WIDTH] % ENTRIES) * WIDTH + i % WIDTH]);
  }
}
