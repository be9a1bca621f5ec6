// SPDX-License-Identifier: Apache-2.0
#include "task.h"

inline double coefficient(int m, int j, int k) {
  return ((j * 17 + k * 31 + m * 5 + j * k * (m + 3)) % 64 - 31.5) / 64;
}

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    const int m = i / 128 % 16;
    for (int j = 0; j < 48; ++j) {
      double sum = 0;
      for (int k = 0; k < 48; ++k) sum += coefficient(m, j, k) * args.x[1ll * k * N + i];
      args.y[1ll * j * N + i] = sum;
    }
  }
}
