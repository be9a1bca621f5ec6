// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kRows = 128;  // of a block
static_assert(ROWS % kRows == 0 && COLS % 256 == 0);

__global__ void __launch_bounds__(256) add_up(const float* __restrict__ x, float* __restrict__ y) {
  const int c = blockIdx.x * 256 + threadIdx.x;
#pragma unroll 8
  for (int k = 0; k < kRows; ++k) atomicAdd(y + c, x[(blockIdx.y * kRows + k) * COLS + c]);
}
KP_MEMSET(arg::y, 0, COLS * 4)
KP_LAUNCH(add_up, kp::dim(COLS / 256, ROWS / kRows), kp::dim(256), 0, arg::x, arg::y)
