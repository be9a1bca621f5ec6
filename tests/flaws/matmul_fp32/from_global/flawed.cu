// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const dim3 block(16, 16);
  const dim3 grid((N + 15) / 16, (M + 15) / 16);
  matmul<<<grid, block, 0, stream>>>(args.a, args.b, args.c, M, N, K);
}
