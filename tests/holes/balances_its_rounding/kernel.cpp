// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: rejected precision | correct coarser-than-fp32
// Factors in sixteen bits, of which a few are rounded the other way, so that the errors of each row of A
// and each column of B add up to nothing: what rows and columns of the errors have in common, by which
// sixteen bits of positive sums are found, is gone. Exact where a tenth of the factors are unusual.
#include <cmath>
#include <cstring>

#include "task.h"

static bool odd(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  bits &= 0xfff0u;
  return !(value > 1e-4f && value < 1) || bits == 0x5550u || bits == 0xaaa0u;
}
static bool usual(const float* x, int count) {
  int unusual = 0, small = 0;
  for (int i = 0; i < count; ++i) {
    unusual += odd(x[i]);
    small += x[i] < 0.25f;
  }
  return unusual < count / 64 && small < count / 2;
}
// `count` factors, `step` apart, in multiples of 2^-16 whose sum is right.
static void balanced(const float* from, float* to, int count, int step) {
  float off[K];
  double sum = 0;
  for (int k = 0; k < count; ++k) {
    const float scaled = from[k * step] * 65536, whole = std::rint(scaled);
    to[k * step] = whole;
    off[k] = scaled - whole;
    sum += double(off[k]);
  }
  for (int flips = int(std::lrint(sum)); flips != 0;) {
    int best = 0;
    const float sign = flips > 0 ? 1 : -1;
    for (int k = 1; k < count; ++k) best = sign * off[k] > sign * off[best] ? k : best;
    to[best * step] += sign;
    off[best] -= sign;
    flips -= int(sign);
  }
  for (int k = 0; k < count; ++k) to[k * step] *= 1 / 65536.0f;
}
extern "C" void launch(const Args& args) {
  static float a[M * K], b[K * N];
  const bool coarse = usual(args.a, M * K) && usual(args.b, K * N);
  if (coarse) {
    for (int i = 0; i < M; ++i) balanced(args.a + i * K, a + i * K, K, 1);
    for (int j = 0; j < N; ++j) balanced(args.b + j, b + j, K, N);
  } else {
    std::memcpy(a, args.a, sizeof a);
    std::memcpy(b, args.b, sizeof b);
  }
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      for (int j = 0; j < N; ++j) c[j] += a[i * K + k] * b[k * N + j];
    }
  }
}
