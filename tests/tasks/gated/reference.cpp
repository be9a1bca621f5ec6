// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& t) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      double parts[8] = {};
      for (int k = 0; k < K; k += 8)
        for (int l = 0; l < 8; ++l) parts[l] += double(t.a[i * K + k + l]) * t.b[j * K + k + l];
      double sum = 0;
      for (const double p : parts) sum += p;
      t.c[i * N + j] = sum / (1 + std::exp(-double(t.g[i * N + j])));
    }
}
