// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// Bit b goes to bit 3 b.
__device__ inline unsigned long long spread(unsigned long long v) {
  unsigned long long to = 0;
#pragma unroll
  for (int b = 0; b < 21; ++b) to |= (v >> b & 1) << (3 * b);
  return to;
}

__global__ void __launch_bounds__(256) arrange(const float* __restrict__ x, float* __restrict__ y) {
  const unsigned u = blockIdx.x * 32 + threadIdx.x, v = blockIdx.y * 4 + threadIdx.y;
  const unsigned w = blockIdx.z * 2 + threadIdx.z;
  y[(w * SIZE + v) * SIZE + u] = x[spread(u) | spread(v) << 1 | spread(w) << 2];
}
static_assert(SIZE % 32 == 0);
KP_LAUNCH(arrange, kp::dim(SIZE / 32, SIZE / 4, SIZE / 2), kp::dim(32, 4, 2), 0, arg::x, arg::y)
