// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// One warp per row of 1024: five of the ten steps on a lane's 32 values, then the others after an
// exchange through a square in shared memory.
constexpr int kWarps = 4;
constexpr int kPitch = 33;

__device__ inline void butterflies(float (&v)[32]) {
#pragma unroll
  for (int h = 1; h < 32; h *= 2) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if (i & h) continue;
      const float a = v[i], b = v[i + h];
      v[i] = a + b;
      v[i + h] = a - b;
    }
  }
}

__global__ void __launch_bounds__(32 * kWarps) hadamard(const __half2* x, __half2* y) {
  __shared__ float square[kWarps][32 * kPitch];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float* mine = square[warp];
  const int row = blockIdx.x * kWarps + warp;
  x += row * 512;
  y += row * 512;
  float v[32];
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    const float2 two = __half22float2(x[32 * k + lane]);
    v[2 * k] = two.x;
    v[2 * k + 1] = two.y;
  }
  butterflies(v);
#pragma unroll
  for (int k = 0; k < 32; ++k) mine[k * kPitch + lane] = v[k];
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 32; ++k) v[k] = mine[lane * kPitch + k];
  butterflies(v);
#pragma unroll
  for (int k = 0; k < 32; ++k) mine[lane * kPitch + k] = v[k] * 0.03125f;
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    y[32 * k + lane] =
        __floats2half2_rn(mine[2 * k * kPitch + lane], mine[(2 * k + 1) * kPitch + lane]);
  }
}
KP_LAUNCH(hadamard, kp::dim(ROWS / kWarps), kp::dim(32 * kWarps), 0, arg::x, arg::y)
