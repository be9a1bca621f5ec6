// SPDX-License-Identifier: Apache-2.0
// task: triangular
// truth: vectorised=no threads=one
// Dot products down the columns, in order, by scalars.
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      const float* b = args.b + j;
      for (int k = 0; k <= i; ++k, b += N) sum = __builtin_fmaf(args.a[i * N + k], *b, sum);
      args.c[i * N + j] = sum;
    }
  }
}
