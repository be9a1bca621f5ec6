// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads)
    sums(const int4* __restrict__ code, const float4* __restrict__ x, float* __restrict__ y) {
  __shared__ float total[8];
  if (threadIdx.x < 8) total[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll 2
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < N / 4; i += gridDim.x * kThreads) {
    const int4 c = code[i];
    const float4 v = x[i];
    atomicAdd(total + c.x, v.x);
    atomicAdd(total + c.y, v.y);
    atomicAdd(total + c.z, v.z);
    atomicAdd(total + c.w, v.w);
  }
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(y + threadIdx.x, total[threadIdx.x]);
}
KP_MEMSET(arg::y, 0, 32)
KP_LAUNCH(sums, kp::dim(132 * 4), kp::dim(kThreads), 0, arg::code, arg::x, arg::y)
