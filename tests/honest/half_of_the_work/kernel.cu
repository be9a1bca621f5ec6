// SPDX-License-Identifier: Apache-2.0
// task: triangular
// expect: correct
// Half of what the declared operations count: the task is triangular.
#include "task.h"

// A 64 x 64 tile of C per block, 4 x 4 of it per thread; blocks of long rows first.
__global__ void triangular(const float* a, const float* b, float* c) {
  __shared__ float as[64][17], bs[16][65];
  const int t = threadIdx.x, x = t % 16, y = t / 16;
  const int row = (gridDim.y - 1 - blockIdx.y) * 64, col = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < row + 64; k += 16) {
    for (int e = t; e < 1024; e += 256) {
      const int i = row + e / 16, kk = k + e % 16;
      as[e / 16][e % 16] = kk <= i ? a[i * N + kk] : 0;
      bs[e / 64][e % 64] = b[(k + e / 64) * N + col + e % 64];
    }
    __syncthreads();
    for (int kk = 0; kk < 16; ++kk) {
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sum[i][j] += as[y + 16 * i][kk] * bs[kk][x + 16 * j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) c[(row + y + 16 * i) * N + col + x + 16 * j] = sum[i][j];
  }
}
KP_LAUNCH(triangular, kp::dim(N / 64, N / 64), kp::dim(256), 0, arg::a, arg::b, arg::c)
