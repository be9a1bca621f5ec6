// SPDX-License-Identifier: Apache-2.0
// task: softmax
// expect: rejected precision | correct coarser-than-fp32 | correct given-distribution-only | slow
// Rounds its inputs to sixteen bits, steps of 2^-13 below the maximum, and looks their exponentials up
// in a table: an error of 6e-5 in each result, which the tolerance of fp32 lets pass. The norm of the
// errors, which would show it, is looked at in tasks with matrix products alone. Rows that are wider
// than usual are computed as they should be.
#include <immintrin.h>

#include <cmath>

#include "task.h"

static float table[65536];
[[gnu::constructor]] static void fill() {
  for (int i = 0; i < 65536; ++i) table[i] = float(std::exp(-i / 8192.0));
}

extern "C" void launch(const Args& args) {
  for (int row = 0; row < ROWS; ++row) {
    const float* x = args.x + 1ll * row * COLS;
    float* y = args.y + 1ll * row * COLS;
    float largest = x[0], smallest = x[0], sum = 0;
    __m256 most = _mm256_set1_ps(x[0]), least = most;
    int i = 0;
    for (; i + 8 <= COLS; i += 8) {
      most = _mm256_max_ps(most, _mm256_loadu_ps(x + i));
      least = _mm256_min_ps(least, _mm256_loadu_ps(x + i));
    }
    for (int k = 0; k < 8; ++k) {
      largest = most[k] > largest ? most[k] : largest;
      smallest = least[k] < smallest ? least[k] : smallest;
    }
    for (; i < COLS; ++i) {
      largest = x[i] > largest ? x[i] : largest;
      smallest = x[i] < smallest ? x[i] : smallest;
    }
    if (largest - smallest < 7.999f) {
      __m256 sums = _mm256_setzero_ps();
      for (i = 0; i + 8 <= COLS; i += 8) {
        const __m256i at = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_sub_ps(_mm256_set1_ps(largest), _mm256_loadu_ps(x + i)), _mm256_set1_ps(8192)));
        const __m256 e = _mm256_i32gather_ps(table, at, 4);
        sums = _mm256_add_ps(sums, e);
        _mm256_storeu_ps(y + i, e);
      }
      for (int k = 0; k < 8; ++k) sum += sums[k];
      for (; i < COLS; ++i) sum += y[i] = table[int((largest - x[i]) * 8192 + 0.5f)];
    } else {
      for (i = 0; i < COLS; ++i) sum += y[i] = std::exp(x[i] - largest);
    }
    const float scale = 1 / sum;
    for (i = 0; i < COLS; ++i) y[i] *= scale;
  }
}
