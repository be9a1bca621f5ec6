// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads)
    abs_sum(const float4* __restrict__ x, float* __restrict__ y) {
  __shared__ float part[kThreads / 32];
  const float4* row = x + 1ll * blockIdx.x * (COLS / 4);
  float s = 0;
#pragma unroll 8
  for (int j = threadIdx.x; j < COLS / 4; j += kThreads) {
    const float4 v = row[j];
    s += fabsf(v.x) + fabsf(v.y) + fabsf(v.z) + fabsf(v.w);
  }
  for (int m = 16; m > 0; m /= 2) s += __shfl_down_sync(0xffffffffu, s, m);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  s = threadIdx.x < kThreads / 32 ? part[threadIdx.x] : 0.0f;
  for (int m = 16; m > 0; m /= 2) s += __shfl_down_sync(0xffffffffu, s, m);
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}
KP_LAUNCH(abs_sum, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::y)
