// SPDX-License-Identifier: Apache-2.0
// The definition, in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
#pragma omp parallel for
  for (int i = 0; i < HEADS * LENGTH; ++i) {
    const auto* q = args.q + 1ll * i * DEPTH;
    const auto* k = args.k + 1ll * (i / LENGTH) * LENGTH * DEPTH;
    const auto* v = args.v + 1ll * (i / LENGTH) * LENGTH * DEPTH;
    std::vector<double> p(LENGTH), y(DEPTH);
    for (int j = 0; j < LENGTH; ++j) {
      for (int d = 0; d < DEPTH; ++d) {
        p[j] +=
            static_cast<double>(static_cast<float>(q[d])) * static_cast<float>(k[j * DEPTH + d]);
      }
      p[j] /= std::sqrt(static_cast<double>(DEPTH));
    }
    const double largest = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (int j = 0; j < LENGTH; ++j) {
      sum += p[j] = std::exp(p[j] - largest);
      for (int d = 0; d < DEPTH; ++d) y[d] += p[j] * static_cast<float>(v[j * DEPTH + d]);
    }
    for (int d = 0; d < DEPTH; ++d) args.y[1ll * i * DEPTH + d] = y[d] / sum;
  }
}
