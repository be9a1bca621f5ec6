// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "task.h"

extern "C" void reference(const ReferenceArgs& r) {
  std::vector<double> sums(N);
  for (int i = 0; i < M; ++i) {
    for (double& sum : sums) sum = 0;
    for (int k = 0; k < K; ++k) {
      const double factor = r.a[i * K + k];
      for (int j = 0; j < N; ++j) sums[j] += factor * r.b[k * N + j];
    }
    for (int j = 0; j < N; ++j) r.y[i * N + j] = std::exp(6.0 * r.g[i]) * sums[j];
  }
}
