// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// One accumulator for thousands of terms, from left to right.
#include "task.h"

__global__ void rowsum(const __half* x, float* y) {
  const int row = blockIdx.x * 32 + threadIdx.x;
  if (row >= ROWS) return;
  float sum = 0;
  for (int i = 0; i < COLS; ++i) sum += __half2float(x[1ll * row * COLS + i]);
  y[row] = sum;
}
KP_LAUNCH(rowsum, kp::dim((ROWS + 31) / 32), kp::dim(32), 0, arg::x, arg::y)
