// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Halves the product again and again, each half an OpenMP task that waits for its own.
#include "task.h"

static void block(const Args& args, int i0, int i1, int j0, int j1) {
  if (i1 - i0 > 24 || j1 - j0 > 28) {
    const bool rows = i1 - i0 > 24;
    const int i = rows ? (i0 + i1) / 2 : i1, j = rows ? j1 : (j0 + j1) / 2;
#pragma omp task
    block(args, i0, i, j0, j);
#pragma omp task
    block(args, rows ? i : i0, i1, rows ? j0 : j, j1);
#pragma omp taskwait
    return;
  }
  for (int i = i0; i < i1; ++i) {
    for (int j = j0; j < j1; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += args.a[i * K + k] * args.b[k * N + j];
      args.c[i * N + j] = sum;
    }
  }
}

extern "C" void launch(const Args& args) {
#pragma omp parallel
#pragma omp single
  block(args, 0, M, 0, N);
}
