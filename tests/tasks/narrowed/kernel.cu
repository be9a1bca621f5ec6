// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// One 16 x 16 tile of C per block.
__global__ void matmul(const float* a, const float* b, __nv_bfloat16* c) {
  __shared__ float as[16][17], bs[16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  const int i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < K; k += 16) {
    as[y][x] = a[i * K + k + x];
    bs[y][x] = b[(k + y) * N + j];
    __syncthreads();
    for (int t = 0; t < 16; ++t) sum += as[y][t] * bs[t][x];
    __syncthreads();
  }
  c[i * N + j] = __float2bfloat16(sum);
}
KP_LAUNCH(matmul, kp::dim(N / 16, M / 16), kp::dim(16, 16), 0, arg::a, arg::b, arg::c)
