// SPDX-License-Identifier: Apache-2.0
// A start that takes seconds a call, for examples/matmul (results/busy-machine.md): every product
// and sum passes through memory, and `b` is read down its columns.
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < M; ++i) {
      volatile float sum = 0;
      for (int k = 0; k < K; ++k) sum = sum + args.a[i * K + k] * args.b[k * N + j];
      args.c[i * N + j] = sum;
    }
  }
}
