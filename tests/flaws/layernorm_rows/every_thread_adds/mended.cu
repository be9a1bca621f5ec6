// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// 256 threads a row, whose values stay in registers.
constexpr int kThreads = 256, kVectors = COLS / 4 / kThreads;
static_assert(COLS % (4 * kThreads) == 0);

__global__ void __launch_bounds__(kThreads)
    normalise(const float4* __restrict__ x, float4* __restrict__ y) {
  __shared__ float sums[2][kThreads / 32];
  x += blockIdx.x * (COLS / 4);
  y += blockIdx.x * (COLS / 4);
  float4 v[kVectors];
  float s = 0, q = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) v[k] = x[k * kThreads + threadIdx.x];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    s += (v[k].x + v[k].y) + (v[k].z + v[k].w);
    q += (v[k].x * v[k].x + v[k].y * v[k].y) + (v[k].z * v[k].z + v[k].w * v[k].w);
  }
#pragma unroll
  for (int m = 16; m > 0; m /= 2) {
    s += __shfl_xor_sync(0xffffffffu, s, m);
    q += __shfl_xor_sync(0xffffffffu, q, m);
  }
  if (threadIdx.x % 32 == 0) sums[0][threadIdx.x / 32] = s, sums[1][threadIdx.x / 32] = q;
  __syncthreads();
  float total = 0, squares = 0;
#pragma unroll
  for (int k = 0; k < kThreads / 32; ++k) total += sums[0][k], squares += sums[1][k];
  const float mean = total / COLS;
  const float scale = rsqrtf(squares / COLS - mean * mean + 1e-5f);
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    y[k * kThreads + threadIdx.x] = make_float4((v[k].x - mean) * scale, (v[k].y - mean) * scale,
                                                (v[k].z - mean) * scale, (v[k].w - mean) * scale);
  }
}
KP_LAUNCH(normalise, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::y)
