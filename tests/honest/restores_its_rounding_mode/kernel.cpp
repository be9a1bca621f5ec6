// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Takes numbers below 2^-126 for zero while it computes, as libraries do, and puts the mode back.
#include <immintrin.h>

#include "task.h"

extern "C" void launch(const Args& args) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      for (int j = 0; j < N; ++j) c[j] += args.a[i * K + k] * args.b[k * N + j];
    }
  }
  _mm_setcsr(before);
}
