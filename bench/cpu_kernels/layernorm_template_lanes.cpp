// SPDX-License-Identifier: Apache-2.0
// task: layernorm
// truth: vectorised=yes threads=all
// A template of LANES accumulators that the compiler keeps in registers, scalar tails.
#include "task.h"

template <int LANES, class F>
static inline float total(int n, F&& at) {
  float part[LANES] = {};
  int i = 0;
  for (; i + LANES <= n; i += LANES) {
#pragma omp simd
    for (int l = 0; l < LANES; ++l) part[l] += at(i + l);
  }
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) part[l] += part[l + half];
  float sum = part[0];
  for (; i < n; ++i) sum += at(i);
  return sum;
}

extern "C" void launch(const Args& args) {
#pragma omp parallel for
  for (int row = 0; row < ROWS; ++row) {
    const float* __restrict x = args.x + 1ll * row * COLS;
    float* __restrict y = args.y + 1ll * row * COLS;
    const float mean = total<64>(COLS, [=](int i) { return x[i]; }) / COLS;
    const float var = total<64>(COLS, [=](int i) { return (x[i] - mean) * (x[i] - mean); }) / COLS;
    const float scale = 1 / __builtin_sqrtf(var + 1e-5f);
    const float* __restrict g = args.gamma;
    const float* __restrict b = args.beta;
    for (int i = 0; i < COLS; ++i) y[i] = (x[i] - mean) * scale * g[i] + b[i];
  }
}
