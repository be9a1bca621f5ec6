// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// One accumulator, from left to right.
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += args.a[i * K + k] * args.b[k * N + j];
      args.c[i * N + j] = sum;
    }
  }
}
