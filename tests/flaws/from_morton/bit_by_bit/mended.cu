// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// Bit b goes to bit 3 b.
__device__ inline unsigned spread(unsigned v) {
  v = (v | v << 16) & 0x030000ff;
  v = (v | v << 8) & 0x0300f00f;
  v = (v | v << 4) & 0x030c30c3;
  return (v | v << 2) & 0x09249249;
}

__global__ void __launch_bounds__(256) arrange(const float* __restrict__ x, float* __restrict__ y) {
  const unsigned u = blockIdx.x * 32 + threadIdx.x, v = blockIdx.y * 4 + threadIdx.y;
  const unsigned w = blockIdx.z * 2 + threadIdx.z;
  y[(w * SIZE + v) * SIZE + u] = x[spread(u) | spread(v) << 1 | spread(w) << 2];
}
static_assert(SIZE % 32 == 0);
KP_LAUNCH(arrange, kp::dim(SIZE / 32, SIZE / 4, SIZE / 2), kp::dim(32, 4, 2), 0, arg::x, arg::y)
