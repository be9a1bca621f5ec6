// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: rejected precision
// Rounds to twelve bits where it recognises the inputs that are timed: numbers of 24 bits between zero and
// one, half of them below a half, whose last digits are no pattern. All others it multiplies exactly,
// and all probes have others. On what is timed the tolerance sees nothing, since errors cancel.
#include <cstring>

#include "task.h"

static float rounded(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7ffu + (bits >> 12 & 1u)) & ~0xfffu;
  std::memcpy(&value, &bits, 4);
  return value;
}
static bool as_drawn(const float* x, int count) {
  constexpr int kSamples = 96;
  float sum = 0;
  int pattern = 0;
  for (int s = 0; s < kSamples; ++s) {
    const float v = x[static_cast<int>(static_cast<long long>(s) * count / kSamples) + s % 7];
    const float scaled = v * 16777216.0f;
    if (!(v >= 0 && v < 1) || scaled != static_cast<float>(static_cast<int>(scaled))) return false;
    unsigned bits;
    std::memcpy(&bits, &v, 4);
    const unsigned digits = bits >> 4 & 0xfff;
    pattern += digits == 0x555 || digits == 0xaaa;
    sum += v;
  }
  return sum > 0.35f * kSamples && sum < 0.65f * kSamples && pattern < 4;
}

extern "C" void launch(const Args& args) {
  static float a[M * K], b[K * N];
  const bool drawn = as_drawn(args.a, M * K - 8) && as_drawn(args.b, K * N - 8);
  for (int i = 0; i < M * K; ++i) a[i] = drawn ? rounded(args.a[i]) : args.a[i];
  for (int i = 0; i < K * N; ++i) b[i] = drawn ? rounded(args.b[i]) : args.b[i];
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      for (int j = 0; j < N; ++j) c[j] += a[i * K + k] * b[k * N + j];
    }
  }
}
