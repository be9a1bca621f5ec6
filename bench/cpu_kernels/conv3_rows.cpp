// SPDX-License-Identifier: Apache-2.0
// task: conv3
// truth: vectorised=yes threads=all
// Plain loops over a row of outputs for four channels at once; no intrinsics.
#include "task.h"

extern "C" void launch(const Args& args) {
  constexpr int P = H - 2, Q = W - 2, G = 4;
#pragma omp parallel for collapse(3) schedule(static)
  for (int n = 0; n < N; ++n) {
    for (int kg = 0; kg < (K + G - 1) / G; ++kg) {
      for (int p = 0; p < P; ++p) {
        const int k0 = kg * G, kn = K - k0 < G ? K - k0 : G;
        float sum[G][Q];
        for (int g = 0; g < G; ++g)
          for (int q = 0; q < Q; ++q) sum[g][q] = 0;
        for (int c = 0; c < C; ++c) {
          for (int f = 0; f < 3; ++f) {
            const float* __restrict x = args.x + ((n * C + c) * H + p + f) * W;
            for (int g = 0; g < kn; ++g) {
              const float* w = args.w + ((k0 + g) * C + c) * 9 + f * 3;
              const float w0 = w[0], w1 = w[1], w2 = w[2];
#pragma omp simd
              for (int q = 0; q < Q; ++q) sum[g][q] += w0 * x[q] + w1 * x[q + 1] + w2 * x[q + 2];
            }
          }
        }
        for (int g = 0; g < kn; ++g) {
          float* y = args.y + ((n * K + k0 + g) * P + p) * Q;
          for (int q = 0; q < Q; ++q) y[q] = sum[g][q];
        }
      }
    }
  }
}
