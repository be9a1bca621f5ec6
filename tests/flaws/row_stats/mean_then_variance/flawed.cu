// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 512;

__device__ float block_sum(float v) {
  __shared__ float part[kThreads / 32];
  for (int m = 16; m > 0; m /= 2) v += __shfl_xor_sync(0xffffffffu, v, m);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int k = 0; k < kThreads / 32; ++k) v += part[k];
  return v;
}

__global__ void __launch_bounds__(kThreads) stats(const float* x, float* mean, float* variance) {
  const float4* row = reinterpret_cast<const float4*>(x + 1ll * blockIdx.x * COLS);
  float s = 0;
#pragma unroll 4
  for (int j = threadIdx.x; j < COLS / 4; j += kThreads) {
    const float4 v = row[j];
    s += (v.x + v.y) + (v.z + v.w);
  }
  const float m = block_sum(s) / COLS;
  float q = 0;
#pragma unroll 4
  for (int j = threadIdx.x; j < COLS / 4; j += kThreads) {
    const float4 v = row[j];
    const float a = v.x - m, b = v.y - m, c = v.z - m, d = v.w - m;
    q += (a * a + b * b) + (c * c + d * d);
  }
  q = block_sum(q) / COLS;
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = m;
    variance[blockIdx.x] = q;
  }
}
KP_LAUNCH(stats, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::mean, arg::variance)
