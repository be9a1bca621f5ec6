// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kTile = 32;
constexpr int kPitch = kTile;

__global__ void __launch_bounds__(kTile* kTile)
    transpose(const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float tile[kTile * kPitch];
  const int tx = threadIdx.x % kTile, ty = threadIdx.x / kTile;
  const int x0 = blockIdx.x * kTile, y0 = blockIdx.y * kTile;
  tile[ty * kPitch + tx] = in[(y0 + ty) * COLS + x0 + tx];
  __syncthreads();
  out[(x0 + ty) * ROWS + y0 + tx] = tile[tx * kPitch + ty];
}
KP_LAUNCH(transpose, kp::dim(COLS / kTile, ROWS / kTile), kp::dim(kTile* kTile), 0, arg::x, arg::y)
