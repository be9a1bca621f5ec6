// SPDX-License-Identifier: Apache-2.0
// Flaw: four neighbouring floats of a thread are loaded one at a time, with few threads in flight.
#include "task.h"
__global__ void __launch_bounds__(64) axpy(const float* x, const float* z, float* y) {
  extern __shared__ float keeps_occupancy_low[];
  for (int i = 4 * (blockIdx.x * 64 + threadIdx.x); i < N; i += 4 * 64 * 132 * 4) {
    for (int j = 0; j < 4; ++j) {
      if (i + j < N) y[i + j] = 2 * x[i + j] + z[i + j];
    }
  }
}
KP_LAUNCH(axpy, kp::dim(132 * 4), kp::dim(64), 48 * 1024, arg::x, arg::z, arg::y)
