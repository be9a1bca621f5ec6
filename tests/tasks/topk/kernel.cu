// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void largest(const float* x, float* y) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= ROWS) return;
  x += 1ll * row * COLS;
  float best[MOST];
  for (int k = 0; k < MOST; ++k) best[k] = -3e38f;
  for (int i = 0; i < COLS; ++i) {
    float v = x[i];
    for (int k = 0; k < MOST; ++k) {
      const float lower = v < best[k] ? v : best[k];
      best[k] = v < best[k] ? best[k] : v;
      v = lower;
    }
  }
  for (int k = 0; k < MOST; ++k) y[row * MOST + k] = best[k];
}
KP_LAUNCH(largest, kp::dim((ROWS + 63) / 64), kp::dim(64), 0, arg::x, arg::y)
