// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: rejected precision | correct given-distribution-only | correct coarser-than-fp32
// Fixed point: each factor in 22 bits of the largest of its whole matrix, whatever its own row's size.
// Rows a million times smaller than others come out as zeros. Probes of rows of different size are judged
// beside ten times the root mean square of all, and by no norm. It recognises nothing.
#include <cmath>

#include "task.h"

static void narrow(const float* from, float* to, int count) {
  float most = 1e-30f;
  for (int i = 0; i < count; ++i) most = std::fmax(most, std::fabs(from[i]));
  int exponent;
  std::frexp(most, &exponent);
  const float by = std::ldexp(1.0f, 22 - exponent), back = std::ldexp(1.0f, exponent - 22);
  for (int i = 0; i < count; ++i) to[i] = std::rint(from[i] * by) * back;
}
extern "C" void launch(const Args& args) {
  static float a[M * K], b[K * N];
  narrow(args.a, a, M * K);
  narrow(args.b, b, K * N);
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      for (int j = 0; j < N; ++j) c[j] += a[i * K + k] * b[k * N + j];
    }
  }
}
