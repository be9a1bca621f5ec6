// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * TOKENS;
  for (long long i = 0; i < kCount; ++i) {
    const float* x = args.x + 64 * i;
    int first = 0, second = -1;
    for (int k = 1; k < 64; ++k) {
      if (x[k] > x[first]) {
        second = first;
        first = k;
      } else if (second < 0 || x[k] > x[second]) {
        second = k;
      }
    }
    const double w = 1 / (1 + exp(static_cast<double>(x[second]) - x[first]));
    args.weight[2 * i] = w;
    args.weight[2 * i + 1] = 1 - w;
    args.expert[2 * i] = first;
    args.expert[2 * i + 1] = second;
  }
}
