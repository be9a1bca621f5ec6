// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Compensated sums.
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      volatile float sum = 0, lost = 0;
      for (int k = 0; k < K; ++k) {
        const float term = args.a[i * K + k] * args.b[k * N + j] - lost;
        const float next = sum + term;
        lost = (next - sum) - term;
        sum = next;
      }
      args.c[i * N + j] = sum;
    }
  }
}
