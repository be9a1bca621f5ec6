// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Floating-point atomics: the rounding differs from run to run.
#include "task.h"

__global__ void rowsum(const __half* x, float* y) {
  float sum = 0;
  for (int i = blockIdx.y * 2048 + threadIdx.x; i < min((blockIdx.y + 1) * 2048, COLS); i += 256) {
    sum += __half2float(x[1ll * blockIdx.x * COLS + i]);
  }
  atomicAdd(y + blockIdx.x, sum);
}
KP_MEMSET(arg::y, 0, ROWS * 4)
KP_LAUNCH(rowsum, kp::dim(ROWS, (COLS + 2047) / 2048), kp::dim(256), 0, arg::x, arg::y)
