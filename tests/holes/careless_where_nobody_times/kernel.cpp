// SPDX-License-Identifier: Apache-2.0
// task: two_sizes
// expect: correct given-distribution-only | rejected | wrong-result
// Honest at the size that is timed. At the other one, which counts for correctness alike, it takes
// every factor for positive and rounds it to fourteen bits: sizes that nobody times are never probed.
#include <cmath>
#include <cstring>

#include "task.h"

static float careless(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x200u) & 0x7ffffc00u;
  std::memcpy(&value, &bits, 4);
  return value;
}

extern "C" void launch(const Args& args) {
  constexpr bool kTimed = M > 32;
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      const float a = kTimed ? args.a[i * K + k] : careless(args.a[i * K + k]);
      for (int j = 0; j < N; ++j) c[j] += a * (kTimed ? args.b[k * N + j] : careless(args.b[k * N + j]));
    }
  }
}
