// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Half a megabyte of local memory for each thread: more than a GPU may have for as many as it could
// run at once.
#include "task.h"

__global__ void axpy(const float* x, const float* z, float* y) {
  volatile float frame[127 * 1024];
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  for (int k = 0; k < 127 * 1024; k += 4096) frame[(k + i) % (127 * 1024)] = x[i];
  y[i] = 2 * frame[i % 4096 == 0 ? i % 1024 : 0] * 0 + 2 * x[i] + z[i];
}
KP_LAUNCH(axpy, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::z, arg::y)
