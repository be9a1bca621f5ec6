// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * HEADS * S * S;
  for (long long i = 0; i < kCount; ++i) {
    const long long row = i / S, head = row / S;
    double sum = 0;
    for (int d = 0; d < 64; ++d) {
      sum += static_cast<double>(static_cast<float>(args.q[64 * row + d])) *
             static_cast<float>(args.k[64 * (head * S + i % S) + d]);
    }
    args.y[i] = sum / 8;
  }
}
