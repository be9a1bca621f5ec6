// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = x[i] > 0 ? x[i] : 0;
}
KP_LAUNCH(relu, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::y)
