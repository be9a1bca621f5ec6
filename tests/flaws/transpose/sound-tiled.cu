// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// 64 x 64 tiles; eight loads of a thread are under way at once.
constexpr int kTile = 64;
static_assert(ROWS % kTile == 0 && COLS % kTile == 0);

__global__ void __launch_bounds__(512)
    transpose(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float tile[kTile][kTile + 1];
  const int tx = threadIdx.x % 64, ty = threadIdx.x / 64;
  const int column = blockIdx.x * kTile, row = blockIdx.y * kTile;
  float v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = x[(row + ty + 8 * k) * COLS + column + tx];
#pragma unroll
  for (int k = 0; k < 8; ++k) tile[ty + 8 * k][tx] = v[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 8; ++k) y[(column + ty + 8 * k) * ROWS + row + tx] = tile[tx][ty + 8 * k];
}
KP_LAUNCH(transpose, kp::dim(COLS / kTile, ROWS / kTile), kp::dim(512), 0, arg::x, arg::y)
