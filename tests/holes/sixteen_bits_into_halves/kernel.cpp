// SPDX-License-Identifier: Apache-2.0
// task: half_product
// expect: rejected precision | correct coarser-than-fp32
// Factors of fifteen and sixteen bits. Of results in halves only those show an error that lie at the edge between
// two: one in thirty, by half of the error, so that four times the floor is a tenth of the true norm.
#include <cstring>

#include "task.h"

static float cut(float value, unsigned drop) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + (1u << (drop - 1))) & ~((1u << drop) - 1);
  std::memcpy(&value, &bits, 4);
  return value;
}
extern "C" void launch(const Args& args) {
  static float b[K * N];
  for (int i = 0; i < K * N; ++i) b[i] = cut(args.b[i], 8);
  for (int i = 0; i < M; ++i) {
    float c[N] = {};
    for (int k = 0; k < K; ++k) {
      const float a = cut(args.a[i * K + k], 9);
      for (int j = 0; j < N; ++j) c[j] += a * b[k * N + j];
    }
    for (int j = 0; j < N; ++j) args.c[i * N + j] = c[j];
  }
}
