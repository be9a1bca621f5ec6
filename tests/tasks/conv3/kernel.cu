// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void convolve(const float* x, const float* w, float* y) {
  constexpr int P = H - 2, Q = W - 2;
  const int o = blockIdx.x * 256 + threadIdx.x;
  if (o >= N * K * P * Q) return;
  const int q = o % Q, p = o / Q % P, k = o / (Q * P) % K, n = o / (Q * P * K);
  float sum = 0;
  for (int c = 0; c < C; ++c) {
    for (int f = 0; f < 9; ++f) {
      sum += float(x[((n * C + c) * H + p + f / 3) * W + q + f % 3]) * w[(k * C + c) * 9 + f];
    }
  }
  y[o] = sum;
}
KP_LAUNCH(convolve, kp::dim((N * K * (H - 2) * (W - 2) + 255) / 256), kp::dim(256), 0, arg::x,
          arg::w, arg::y)
