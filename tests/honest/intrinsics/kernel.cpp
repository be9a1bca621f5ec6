// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Intrinsics behind a question to the processor, and a fallback.
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "task.h"

#ifdef __x86_64__
__attribute__((target("avx2"))) static float sum_avx2(const float* x, int n) {
  __m256 sum = _mm256_setzero_ps();
  int i = 0;
  for (; i + 8 <= n; i += 8) sum = _mm256_add_ps(sum, _mm256_loadu_ps(x + i));
  alignas(32) float parts[8];
  _mm256_store_ps(parts, sum);
  float total = 0;
  for (const float part : parts) total += part;
  for (; i < n; ++i) total += x[i];
  return total;
}
#endif

static float sum_plain(const float* x, int n) {
  float total = 0;
  for (int i = 0; i < n; ++i) total += x[i];
  return total;
}

extern "C" void launch(const Args& args) {
#ifdef __x86_64__
  static const bool fast = __builtin_cpu_supports("avx2") != 0;
#endif
  static float row_of[COLS];
  for (int row = 0; row < ROWS; ++row) {
    for (int i = 0; i < COLS; ++i) row_of[i] = static_cast<float>(args.x[1ll * row * COLS + i]);
#ifdef __x86_64__
    args.y[row] = fast ? sum_avx2(row_of, COLS) : sum_plain(row_of, COLS);
#else
    args.y[row] = sum_plain(row_of, COLS);
#endif
  }
}
