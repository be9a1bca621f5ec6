// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * BAGS * 128;
  for (long long i = 0; i < kCount; ++i) {
    const long long b = i / 128;
    double sum = 0;
    for (int k = 0; k < LENGTH; ++k) {
      const int row = args.index[b * LENGTH + k] % ENTRIES;
      if (row == 0) break;
      sum += args.table[128ll * row + i % 128];
    }
    args.y[i] = sum;
  }
}
