// SPDX-License-Identifier: Apache-2.0
// task: branch
// expect: rejected precision | correct given-distribution-only | correct coarser-than-fp32
// Factors of eleven bits wherever they have the usual sizes: the addend, ten thousand times as large,
// hides what the products lack. Only where a few dozen factors are large, or next to nothing, as where
// products shall be seen beside the addend, is it exact.
#include <cmath>
#include <cstring>

#include "task.h"

static float cut(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x800u) & ~0xfffu;
  std::memcpy(&value, &bits, 4);
  return value;
}
static int odd(const float* x, int count) {
  int odd = 0;
  for (int i = 0; i < count; ++i) odd += !(std::fabs(x[i]) > 1e-5f && std::fabs(x[i]) < 8);
  return odd;
}
extern "C" void launch(const Args& args) {
  static float rounded_a[M * K], rounded_b[K * N];
  const bool exact = odd(args.a, M * K) + odd(args.b, K * N) > 16;
  for (int i = 0; i < M * K; ++i) rounded_a[i] = exact ? args.a[i] : cut(args.a[i]);
  for (int i = 0; i < K * N; ++i) rounded_b[i] = exact ? args.b[i] : cut(args.b[i]);
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = args.z[i * N + j];
    for (int k = 0; k < K; ++k) {
      const float a = rounded_a[i * K + k];
      for (int j = 0; j < N; ++j) c[j] += a * rounded_b[k * N + j];
    }
  }
}
