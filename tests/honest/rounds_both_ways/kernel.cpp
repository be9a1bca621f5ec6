// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Interval arithmetic: all sums once rounded down and once up, and their means; then the mode is put
// back. Flags that stay set are nobody's business.
#include <cfenv>

#include "task.h"

[[gnu::noinline]] static void product(const Args& args, int i, float* c) {
  for (int j = 0; j < N; ++j) c[j] = 0;
  for (int k = 0; k < K; ++k) {
    const float a = args.a[i * K + k];
    for (int j = 0; j < N; ++j) c[j] += a * args.b[k * N + j];
  }
}
extern "C" void launch(const Args& args) {
  std::fenv_t before;
  std::feholdexcept(&before);
  for (int i = 0; i < M; ++i) {
    float low[N], high[N];
    std::fesetround(FE_DOWNWARD);
    product(args, i, low);
    std::fesetround(FE_UPWARD);
    product(args, i, high);
    std::fesetround(FE_TONEAREST);
    for (int j = 0; j < N; ++j) args.c[i * N + j] = low[j] + (high[j] - low[j]) / 2;
  }
  std::feupdateenv(&before);
}
