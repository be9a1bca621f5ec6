// SPDX-License-Identifier: Apache-2.0
// task: softmax
// truth: vectorised=yes threads=all
// omp simd with a polynomial for exp; rows over the threads.
#include <algorithm>

#include "task.h"

static inline float exp_of(float x) {
  x = x < -87.0f ? -87.0f : x;
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * __builtin_bit_cast(float, (static_cast<int>(n) + 127) << 23);
}

extern "C" void launch(const Args& args) {
#pragma omp parallel for schedule(static)
  for (int row = 0; row < ROWS; ++row) {
    const float* x = args.x + 1ll * row * COLS;
    float* y = args.y + 1ll * row * COLS;
    float largest = x[0];
#pragma omp simd reduction(max : largest)
    for (int i = 0; i < COLS; ++i) largest = x[i] > largest ? x[i] : largest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < COLS; ++i) {
      const float e = exp_of(x[i] - largest);
      y[i] = e;
      sum += e;
    }
    const float scale = 1 / sum;
#pragma omp simd
    for (int i = 0; i < COLS; ++i) y[i] *= scale;
  }
}
