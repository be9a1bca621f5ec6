// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * M;
  for (long long i = 0; i < kCount; ++i) {
    double sum = 0;
    for (long long k = 0; k < K; ++k) {
      sum += static_cast<double>(static_cast<float>(args.w[i * K + k])) *
             static_cast<float>(args.x[k]);
    }
    args.y[i] = sum;
  }
}
