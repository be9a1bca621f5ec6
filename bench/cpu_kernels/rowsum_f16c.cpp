// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// truth: vectorised=yes threads=all
// Halves widened in registers, four accumulators, dynamic rows.
#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif

#include "task.h"

template <class T>
static float row_sum(const T* x, int n) {
  int i = 0;
  float sum = 0;
#if defined(__AVX512F__)
  __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
  const auto load = [x](int at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + at)));
  };
  for (; i + 64 <= n; i += 64) {
    s0 = _mm512_add_ps(s0, load(i));
    s1 = _mm512_add_ps(s1, load(i + 16));
    s2 = _mm512_add_ps(s2, load(i + 32));
    s3 = _mm512_add_ps(s3, load(i + 48));
  }
  sum = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
#elif defined(__F16C__)
  __m256 s0 = _mm256_setzero_ps(), s1 = s0;
  for (; i + 16 <= n; i += 16) {
    s0 = _mm256_add_ps(s0, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(x + i))));
    s1 = _mm256_add_ps(s1, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(x + i + 8))));
  }
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, _mm256_add_ps(s0, s1));
  for (const float lane : lanes) sum += lane;
#endif
  for (; i < n; ++i) sum += static_cast<float>(x[i]);
  return sum;
}

extern "C" void launch(const Args& args) {
#pragma omp parallel for schedule(dynamic, 1)
  for (int row = 0; row < ROWS; ++row) args.y[row] = row_sum(args.x + 1ll * row * COLS, COLS);
}
