// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Loads past L1 and stores that stream.
#include "task.h"

__global__ void __launch_bounds__(256, 8) axpy(const float* x, const float* z, float* y) {
  const int first = blockIdx.x * 1024 + threadIdx.x;
  for (int k = 0; k < 4; ++k) {
    const int i = first + 256 * k;
    if (i < N) __stcs(y + i, fmaf(2, __ldcs(x + i), __ldcg(z + i)));
  }
}
KP_LAUNCH(axpy, kp::dim((N + 1023) / 1024), kp::dim(256), 0, arg::x, arg::z, arg::y)
