// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__device__ inline float tap(int k) { return (k < 0 ? 5 + k : 5 - k) / 25.0f; }

__global__ void __launch_bounds__(256) filter(const float* __restrict__ x, float* __restrict__ y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int z = blockIdx.y;
  float sum = 0;
#pragma unroll
  for (int k = -4; k <= 4; ++k) {
    if (z + k >= 0 && z + k < DEPTH) sum += tap(k) * x[1ll * (z + k) * PLANE + i];
  }
  y[1ll * z * PLANE + i] = sum;
}
KP_LAUNCH(filter, kp::dim(PLANE / 256, DEPTH), kp::dim(256), 0, arg::x, arg::y)
