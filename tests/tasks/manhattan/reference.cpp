// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      double sum = 0;
      for (int k = 0; k < K; ++k) sum += std::fabs(double(a.x[i * K + k]) - a.z[j * K + k]);
      a.d[i * N + j] = sum;
    }
  }
}
