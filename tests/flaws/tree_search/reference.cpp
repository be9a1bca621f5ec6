// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    const int q = args.query[i];
    long long todo[64];
    int count = 0, sum = 0;
    todo[count++] = 0;
    while (count > 0) {
      const long long node = todo[--count];
      const int k = args.key[node];
      sum += k;
      if (2 * node + 2 >= NODES) continue;
      if (q < k + 8000) todo[count++] = 2 * node + 1;
      if (q >= k - 8000) todo[count++] = 2 * node + 2;
    }
    args.y[i] = sum;
  }
}
