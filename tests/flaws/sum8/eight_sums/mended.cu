// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads)
    sums(const int4* __restrict__ code, const float4* __restrict__ x, float* __restrict__ y) {
  __shared__ float total[8];
  if (threadIdx.x < 8) total[threadIdx.x] = 0;
  __syncthreads();
  // Eight sums in the registers of each thread.
  float mine[8] = {};
#pragma unroll 2
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < N / 4; i += gridDim.x * kThreads) {
    const int4 c = code[i];
    const float4 v = x[i];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      mine[k] += c.x == k ? v.x : 0.0f;
      mine[k] += c.y == k ? v.y : 0.0f;
      mine[k] += c.z == k ? v.z : 0.0f;
      mine[k] += c.w == k ? v.w : 0.0f;
    }
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    for (int m = 16; m > 0; m /= 2) mine[k] += __shfl_xor_sync(0xffffffffu, mine[k], m);
    if (threadIdx.x % 32 == 0) atomicAdd(total + k, mine[k]);
  }
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(y + threadIdx.x, total[threadIdx.x]);
}
KP_MEMSET(arg::y, 0, 32)
KP_LAUNCH(sums, kp::dim(132 * 4), kp::dim(kThreads), 0, arg::code, arg::x, arg::y)
