// SPDX-License-Identifier: Apache-2.0
// task: axpy
// truth: vectorised=yes threads=one
// Vectorised, but no threads.
#include "task.h"

extern "C" void launch(const Args& args) {
  const float* __restrict x = args.x;
  const float* __restrict z = args.z;
  float* __restrict y = args.y;
#pragma omp simd
  for (int i = 0; i < N; ++i) y[i] = 2 * x[i] + z[i];
}
