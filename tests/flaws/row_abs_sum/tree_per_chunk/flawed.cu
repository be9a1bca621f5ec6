// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void abs_sum(const float* x, float* y) {
  __shared__ float tree[256];
  const float* row = x + 1ll * blockIdx.x * COLS;
  float total = 0;
  for (int chunk = 0; chunk < COLS; chunk += 256) {
    tree[threadIdx.x] = fabsf(row[chunk + threadIdx.x]);
    __syncthreads();
    for (int s = 128; s > 0; s /= 2) {
      if (threadIdx.x < s) tree[threadIdx.x] += tree[threadIdx.x + s];
      __syncthreads();
    }
    total += tree[0];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = total;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  abs_sum<<<ROWS, 256, 0, stream>>>(args.x, args.y);
}
