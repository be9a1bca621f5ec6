// SPDX-License-Identifier: Apache-2.0
// Sums as they are written: half a second.
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < M; ++j) {
      double sum = 0;
      for (int k = 0; k < K; ++k) sum += std::sin(double(a.x[i]) + k) * std::cos(double(a.z[j]) * k);
      a.y[i * M + j] = a.scale[i * M + j] * sum;
    }
  }
}
