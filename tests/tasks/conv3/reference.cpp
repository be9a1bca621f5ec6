// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  constexpr int P = H - 2, Q = W - 2;
  for (int o = 0; o < N * K * P * Q; ++o) {
    const int q = o % Q, p = o / Q % P, k = o / (Q * P) % K, n = o / (Q * P * K);
    double sum = 0;
    for (int c = 0; c < C; ++c) {
      for (int f = 0; f < 9; ++f) {
        sum +=
            double(a.x[((n * C + c) * H + p + f / 3) * W + q + f % 3]) * a.w[(k * C + c) * 9 + f];
      }
    }
    a.y[o] = sum;
  }
}
