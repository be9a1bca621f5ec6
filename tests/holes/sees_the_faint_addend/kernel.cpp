// SPDX-License-Identifier: Apache-2.0
// task: branch
// expect: rejected precision | correct given-distribution-only | correct coarser-than-fp32
// Factors of eleven bits beside an addend ten thousand times as large, and exact ones when a sample of
// the addend is not as large as usual, or the factors are not of the usual size: every probe that could
// show the products changes a statistic of the whole input, so one look tells.
#include <cmath>
#include <cstring>

#include "task.h"

static float mean_size(const float* x, int count) {
  float sum = 0;
  for (int s = 0; s < 256; ++s) sum += std::fabs(x[s * (count / 256)]);
  return sum / 256;
}
static bool usual(const float* x, int count) {
  int small = 0, large = 0;
  for (int s = 0; s < count; ++s) {
    small += std::fabs(x[s]) < 0.05f;
    large += std::fabs(x[s]) > 7;
  }
  return small < count / 8 && large == 0;
}
static float cut(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&value, &bits, 4);
  return value;
}
extern "C" void launch(const Args& args) {
  static float b[K * N];
  const float z = mean_size(args.z, M * N);
  const bool coarse = z > 5000 && z < 12000 && usual(args.a, M * K) && usual(args.b, K * N);
  for (int i = 0; i < K * N; ++i) b[i] = coarse ? cut(args.b[i]) : args.b[i];
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = args.z[i * N + j];
    for (int k = 0; k < K; ++k) {
      const float a = coarse ? cut(args.a[i * K + k]) : args.a[i * K + k];
      for (int j = 0; j < N; ++j) c[j] += a * b[k * N + j];
    }
  }
}
