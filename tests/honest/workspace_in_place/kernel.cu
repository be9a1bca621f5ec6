// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Updates the workspace in place, three times.
#include "task.h"

__global__ void start(const float* x, float* w) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) w[i] = x[i];
}
__global__ void add(const float* other, float* w) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) w[i] += other[i];
}
__global__ void finish(const float* w, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = w[i];
}
KP_LAUNCH(start, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::workspace)
KP_LAUNCH(add, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::workspace)
KP_LAUNCH(add, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::z, arg::workspace)
KP_LAUNCH(finish, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::workspace, arg::y)
