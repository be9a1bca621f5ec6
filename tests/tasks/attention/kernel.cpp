// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "task.h"

extern "C" void launch(const Args& args) {
  std::vector<float> p(KEYS);
  for (int i = 0; i < ROWS; ++i) {
    float largest = -1e30f, sum = 0;
    for (int j = 0; j < KEYS; ++j) {
      p[j] = 0;
      for (int d = 0; d < D; ++d) p[j] += args.q[i * D + d] * args.k[j * D + d];
      p[j] /= 8;
      largest = std::max(largest, p[j]);
    }
    for (int j = 0; j < KEYS; ++j) sum += p[j] = std::exp(p[j] - largest);
    float* y = args.y + i * D;
    for (int d = 0; d < D; ++d) y[d] = 0;
    for (int j = 0; j < KEYS; ++j) {
      for (int d = 0; d < D; ++d) y[d] += p[j] * args.v[j * D + d];
    }
    for (int d = 0; d < D; ++d) y[d] /= sum;
  }
}
