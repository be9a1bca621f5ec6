// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void mode(const int* __restrict__ x, int* __restrict__ y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  int count[16];
#pragma unroll
  for (int k = 0; k < 16; ++k) count[k] = 0;
#pragma unroll 8
  for (int k = 0; k < LENGTH; ++k) ++count[x[k * N + i] & 15];
  int best = 0, most = count[0];
#pragma unroll
  for (int k = 1; k < 16; ++k) {
    if (count[k] > most) most = count[k], best = k;
  }
  y[i] = best;
}
KP_LAUNCH(mode, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::y)
