// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void __launch_bounds__(1024) mean_square(const float4* x, float* y) {
  __shared__ float part[32];
  const float4* row = x + 1ll * blockIdx.x * (COLS / 4);
  float s = 0;
#pragma unroll 8
  for (int j = threadIdx.x; j < COLS / 4; j += 1024) {
    const float4 v = row[j];
    s += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int m = 16; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = part[threadIdx.x];
    for (int m = 16; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
    if (threadIdx.x == 0) y[blockIdx.x] = s / COLS;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  mean_square<<<ROWS, 1024, 0, stream>>>(reinterpret_cast<const float4*>(args.x), args.y);
}
