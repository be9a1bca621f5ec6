// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void axpy(const float* x, const float* z, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2 * x[i] + z[i];
}
KP_LAUNCH(axpy, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::z, arg::y)
