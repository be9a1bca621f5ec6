// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A bitonic network over the column, in registers.
__global__ void __launch_bounds__(256, 8) sort(const float* x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  float v[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) v[k] = x[1ll * k * N + i];
#pragma unroll
  for (int size = 2; size <= 64; size *= 2) {
#pragma unroll
    for (int step = size / 2; step > 0; step /= 2) {
#pragma unroll
      for (int k = 0; k < 64; ++k) {
        const int other = k ^ step;
        if (other <= k) continue;
        const float low = fminf(v[k], v[other]), high = fmaxf(v[k], v[other]);
        const bool up = (k & size) == 0;
        v[k] = up ? low : high;
        v[other] = up ? high : low;
      }
    }
  }
#pragma unroll
  for (int k = 0; k < 64; ++k) y[1ll * k * N + i] = v[k];
}
KP_LAUNCH(sort, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::y)
