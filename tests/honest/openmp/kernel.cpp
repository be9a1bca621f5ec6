// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Threads of OpenMP, which stay between calls.
#include "task.h"

extern "C" void launch(const Args& args) {
#pragma omp parallel for simd
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
