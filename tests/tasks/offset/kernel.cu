// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void add(const float* x, const float* b, float* y) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < 1ll * ROWS * COLS) y[i] = float(x[i]) + b[i % COLS];
}
KP_LAUNCH(add, kp::dim((1ll * ROWS * COLS + 255) / 256), kp::dim(256), 0, arg::x, arg::b, arg::y)
