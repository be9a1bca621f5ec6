// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  std::vector<double> p(KEYS);
  for (int i = 0; i < ROWS; ++i) {
    double largest = -1e30, sum = 0;
    for (int j = 0; j < KEYS; ++j) {
      p[j] = 0;
      for (int d = 0; d < D; ++d)
        p[j] += static_cast<double>(args.q[i * D + d]) * args.k[j * D + d];
      p[j] /= 8;
      largest = std::max(largest, p[j]);
    }
    for (int j = 0; j < KEYS; ++j) sum += p[j] = std::exp(p[j] - largest);
    double* y = args.y + i * D;
    for (int d = 0; d < D; ++d) y[d] = 0;
    for (int j = 0; j < KEYS; ++j) {
      for (int d = 0; d < D; ++d) y[d] += p[j] * args.v[j * D + d];
    }
    for (int d = 0; d < D; ++d) y[d] /= sum;
  }
}
