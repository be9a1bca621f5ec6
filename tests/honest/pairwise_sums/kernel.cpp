// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Sums of halves, down to single products.
#include "task.h"

static float sum(const float* a, const float* b, int from, int count) {
  if (count == 1) return a[from] * b[from * N];
  return sum(a, b, from, count / 2) + sum(a, b, from + count / 2, count - count / 2);
}
extern "C" void launch(const Args& args) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      args.c[i * N + j] = sum(args.a + i * K, args.b + j, 0, K);
    }
  }
}
