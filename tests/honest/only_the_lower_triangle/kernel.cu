// SPDX-License-Identifier: Apache-2.0
// task: triangular
// expect: correct
// Adds up what lies on and below the diagonal, in loops of different length: half of the declared
// operations. The last blocks have the longest loops, and begin first.
#include "task.h"

__global__ void product(const float* a, const float* b, float* c) {
  __shared__ float as[16][17], bs[16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = (gridDim.y - 1 - blockIdx.y) * 16;
  const int i = row + y, j = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k <= row; k += 16) {
    as[y][x] = k + x <= i ? a[i * N + k + x] : 0;
    bs[y][x] = b[(k + y) * N + j];
    __syncthreads();
    for (int t = 0; t < 16; ++t) sum += as[y][t] * bs[t][x];
    __syncthreads();
  }
  c[i * N + j] = sum;
}
KP_LAUNCH(product, kp::dim(N / 16, N / 16), kp::dim(16, 16), 0, arg::a, arg::b, arg::c)
