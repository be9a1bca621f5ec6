// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Sums in double precision.
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      double sum = 0;
      for (int k = 0; k < K; ++k) sum += double(args.a[i * K + k]) * args.b[k * N + j];
      args.c[i * N + j] = static_cast<float>(sum);
    }
  }
}
