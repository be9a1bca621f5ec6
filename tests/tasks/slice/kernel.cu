// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void slice(const float* x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < COLS / 8) y[1ll * blockIdx.y * (COLS / 8) + i] = x[1ll * blockIdx.y * COLS + i];
}
KP_LAUNCH(slice, kp::dim((COLS / 8 + 255) / 256, ROWS), kp::dim(256), 0, arg::x, arg::y)
