// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  for (int i = 0; i < N; ++i) {
    double sum = 0;
    for (int k = 0; k < K; ++k) sum += a.t[k] * std::cos(double(a.x[i]) + k);
    a.y[i] = a.x[i] + sum;
  }
}
