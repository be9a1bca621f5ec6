// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kRows = 128;  // of a block
static_assert(ROWS % kRows == 0 && COLS % 256 == 0);

__global__ void __launch_bounds__(256) add_up(const float* __restrict__ x, float* __restrict__ y) {
  const int c = blockIdx.x * 256 + threadIdx.x;
  float sum = 0;
#pragma unroll 16
  for (int k = 0; k < kRows; ++k) sum += x[(blockIdx.y * kRows + k) * COLS + c];
  atomicAdd(y + c, sum);
}
KP_MEMSET(arg::y, 0, COLS * 4)
KP_LAUNCH(add_up, kp::dim(COLS / 256, ROWS / kRows), kp::dim(256), 0, arg::x, arg::y)
