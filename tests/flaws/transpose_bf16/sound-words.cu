// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// Tiles of 64 x 64, two values a word in memory and in shared memory; even and odd rows lie apart
// there, so that neither side meets a bank twice.
static_assert(ROWS % 64 == 0 && COLS % 64 == 0);

__global__ void __launch_bounds__(256)
    transpose(const unsigned* __restrict__ x, unsigned* __restrict__ y) {
  __shared__ unsigned tile[2][32][33];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  unsigned v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = x[(row + warp + 8 * k) * (COLS / 2) + column / 2 + lane];
#pragma unroll
  for (int k = 0; k < 8; ++k) tile[(warp + 8 * k) % 2][(warp + 8 * k) / 2][lane] = v[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int pair = warp + 8 * k;
    const unsigned even = tile[0][lane][pair], odd = tile[1][lane][pair];
    unsigned* to = y + (column + 2 * pair) * (ROWS / 2) + row / 2 + lane;
    to[0] = __byte_perm(even, odd, 0x5410);
    to[ROWS / 2] = __byte_perm(even, odd, 0x7632);
  }
}
KP_LAUNCH(transpose, kp::dim(COLS / 64, ROWS / 64), kp::dim(256), 0, arg::x, arg::y)
