// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: compile-error | timed-out | correct
// Correct, but each of 20000 calls of a deprecated function is worth a warning of 8 KB: 160 MB of
// messages about a source of a page, for whoever keeps them in memory, clips or prints them.
#include "task.h"

#define T1 "deprecated, deprecated, deprecated, deprecated, deprecated, deprecated, "
#define T2 T1 T1 T1 T1 T1 T1 T1 T1 T1 T1
#define T3 T2 T2 T2 T2 T2 T2 T2 T2 T2 T2 T2
[[deprecated(T3)]] __device__ inline void old() {}
#define C1 old(); old(); old(); old(); old(); old(); old(); old(); old(); old();
#define C2 C1 C1 C1 C1 C1 C1 C1 C1 C1 C1
#define C3 C2 C2 C2 C2 C2 C2 C2 C2 C2 C2
#define C4 C3 C3 C3 C3 C3 C3 C3 C3 C3 C3

__device__ void many() { C4 C4 }

__global__ void axpy(const float* x, const float* z, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i == -1) many();
  if (i < N) y[i] = 2 * x[i] + z[i];
}
KP_LAUNCH(axpy, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::z, arg::y)
