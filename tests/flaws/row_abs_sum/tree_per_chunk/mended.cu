// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void abs_sum(const float* x, float* y) {
  __shared__ float tree[256];
  const float* row = x + 1ll * blockIdx.x * COLS;
  float mine = 0;
#pragma unroll 8
  for (int j = threadIdx.x; j < COLS; j += 256) mine += fabsf(row[j]);
  tree[threadIdx.x] = mine;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) tree[threadIdx.x] += tree[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = tree[0];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  abs_sum<<<ROWS, 256, 0, stream>>>(args.x, args.y);
}
