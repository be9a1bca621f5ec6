// SPDX-License-Identifier: Apache-2.0
// Flaw: eight blocks for a GPU with over a hundred multiprocessors.
#include "task.h"
__global__ void axpy(const float* x, const float* z, float* y) {
  for (int i = blockIdx.x * 1024 + threadIdx.x; i < N; i += 8 * 1024) y[i] = 2 * x[i] + z[i];
}
KP_LAUNCH(axpy, kp::dim(8), kp::dim(1024), 0, arg::x, arg::z, arg::y)
