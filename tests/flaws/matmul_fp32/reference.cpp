// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * M*N;
  for (long long i = 0; i < kCount; ++i) {
    const long long r = i / N, j = i % N;
    double sum = 0;
    for (long long k = 0; k < K; ++k) sum += static_cast<double>(args.a[r * K + k]) * args.b[k * N + j];
    args.c[i] = sum;
  }
}
