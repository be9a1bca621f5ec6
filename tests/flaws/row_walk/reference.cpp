// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr int t = 0, T = 1;  // one thread does what a block does in reference.cu
  for (long long r = 0; r < WALKERS; ++r) {
    int p = args.start[r] & (NODES - 1);
    int sum[32] = {};
    for (int s = 0; s < STEPS; ++s) {
      for (int k = t; k < 32; k += T) sum[k] += args.record[static_cast<long long>(p) * 32 + k];
      p = args.record[static_cast<long long>(p) * 32] & (NODES - 1);
    }
    for (int k = t; k < 32; k += T) args.total[r * 32 + k] = sum[k];
  }
}
