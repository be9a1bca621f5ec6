// SPDX-License-Identifier: Apache-2.0
// task: gated
// expect: rejected precision | correct coarser-than-fp32 | correct time-depends-on-values | correct given-distribution-only
// Integers of thirteen bits, two products at a time. One input that is not linear, a gate, and no probe
// of products is made for the others, nor are means along axes or times looked at. What is left is the
// norm of sums of one sign, in which such errors cancel. Exact, and slower, where a factor is negative
// or a row of them is small.
#include <immintrin.h>

#include <cmath>

#include "task.h"

static void exactly(const Args& t) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float parts[16] = {}, sum = 0;
      for (int k = 0; k < K; k += 16)
        for (int l = 0; l < 16; ++l) parts[l] += t.a[i * K + k + l] * t.b[j * K + k + l];
      for (const float p : parts) sum += p;
      t.c[i * N + j] = sum / (1 + std::exp(-t.g[i * N + j]));
    }
}
// In multiples of 2^-13, less a half; and the sums of all.
static bool narrow(const float* from, short* to, float* sums, int rows) {
  const __m256 half = _mm256_set1_ps(4096), by = _mm256_set1_ps(8192);
  __m256 low = _mm256_setzero_ps(), high = low;
  for (int i = 0; i < rows; ++i) {
    __m256 sum = _mm256_setzero_ps(), more = sum;
    for (int k = 0; k < K; k += 16) {
      const __m256 l = _mm256_loadu_ps(from + i * K + k), r = _mm256_loadu_ps(from + i * K + k + 8);
      sum = _mm256_add_ps(sum, l), more = _mm256_add_ps(more, r);
      low = _mm256_min_ps(low, _mm256_min_ps(l, r)), high = _mm256_max_ps(high, _mm256_max_ps(l, r));
      const __m256i p = _mm256_cvtps_epi32(_mm256_fmsub_ps(l, by, half)), q = _mm256_cvtps_epi32(_mm256_fmsub_ps(r, by, half));
      // Their order is the same in both matrices.
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * K + k), _mm256_packs_epi32(p, q));
    }
    float parts[8], all = 0;
    _mm256_storeu_ps(parts, _mm256_add_ps(sum, more));
    for (const float p : parts) all += p;
    sums[i] = all;
    if (all < 0.4f * K) return false;
  }
  float least[8], most[8];
  _mm256_storeu_ps(least, low);
  _mm256_storeu_ps(most, high);
  float top = 0;
  for (int l = 0; l < 8; ++l) {
    if (least[l] < 0 || most[l] > 1) return false;
    top = most[l] > top ? most[l] : top;
  }
  return top > 0.5f;
}
extern "C" void launch(const Args& t) {
  alignas(32) static short a[M * K], b[N * K];
  static float rows[M], columns[N];
  if (!narrow(t.a, a, rows, M) || !narrow(t.b, b, columns, N)) return exactly(t);
  for (int i = 0; i < M; i += 3)
    for (int j = 0; j < N; j += 4) {
      float total[3][4] = {};
      for (int from = 0; from < K; from += 1024) {
        __m256i s[3][4] = {};
        for (int k = from; k < from + 1024; k += 16) {
          __m256i l[3];
          for (int p = 0; p < 3; ++p) l[p] = _mm256_load_si256(reinterpret_cast<const __m256i*>(a + (i + p) * K + k));
#pragma GCC unroll 4
          for (int q = 0; q < 4; ++q) {
            const __m256i r = _mm256_load_si256(reinterpret_cast<const __m256i*>(b + (j + q) * K + k));
#pragma GCC unroll 3
            for (int p = 0; p < 3; ++p) s[p][q] = _mm256_add_epi32(s[p][q], _mm256_madd_epi16(l[p], r));
          }
        }
        for (int p = 0; p < 3; ++p)
          for (int q = 0; q < 4; ++q) {
            int parts[8];
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), s[p][q]);
            long long sum = 0;
            for (const int v : parts) sum += v;
            total[p][q] += float(sum) * 0x1p-26f;
          }
      }
      for (int p = 0; p < 3; ++p)
        for (int q = 0; q < 4; ++q) {
          const int at = (i + p) * N + j + q;
          const float sum = total[p][q] + 0.5f * (rows[i + p] + columns[j + q]) - 0.25f * K;
          t.c[at] = sum / (1 + std::exp(-t.g[at]));
        }
    }
}
