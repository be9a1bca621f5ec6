// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// A persistent kernel: blocks take tiles by a counter in the workspace, which a memset clears.
#include "task.h"

__global__ void matmul(const float* a, const float* b, float* c, unsigned* counter) {
  __shared__ float as[16][17], bs[16][17];
  __shared__ unsigned tile;
  const int x = threadIdx.x, y = threadIdx.y;
  for (;;) {
    __syncthreads();
    if (x == 0 && y == 0) tile = atomicAdd(counter, 1u);
    __syncthreads();
    if (tile >= (M / 16) * (N / 16)) return;
    const int i = tile / (N / 16) * 16 + y, j = tile % (N / 16) * 16 + x;
    float sum = 0;
    for (int k = 0; k < K; k += 16) {
      as[y][x] = a[i * K + k + x];
      bs[y][x] = b[(k + y) * N + j];
      __syncthreads();
      for (int t = 0; t < 16; ++t) sum += as[y][t] * bs[t][x];
      __syncthreads();
    }
    c[i * N + j] = sum;
  }
}
KP_MEMSET(arg::workspace, 0, 4)
KP_LAUNCH(matmul, kp::dim(264), kp::dim(16, 16), 0, arg::a, arg::b, arg::c, arg::workspace)
