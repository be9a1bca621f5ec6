// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void blend(const float* m, const float* x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = m[i] * x[i];
}
KP_LAUNCH(blend, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::m, arg::x, arg::y)
