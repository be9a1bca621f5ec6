// SPDX-License-Identifier: Apache-2.0
// task: counts
// expect: correct given-distribution-only | rejected precision | wrong-result
// Looks at 64 factors of each matrix: if these are whole and small, all are, and it multiplies 16-bit
// integers. Of inputs that are whole numbers no probe changes a few: "few", "outliers", "heavy" and
// "lone" are for real numbers alone, and "fractions" change all.
#include <immintrin.h>

#include "task.h"

static bool whole(const float* x, int count) {
  int zeros = 0;
  for (int s = 0; s < 64; ++s) {
    const float v = x[s * (count / 64) + s % 5];
    if (!(v >= -64 && v <= 64 && v == float(int(v)))) return false;
    zeros += v == 0;
  }
  return zeros <= 16;
}
static void exactly(const Args& args) {
  for (int j = 0; j < N; j += 16) {
    for (int i = 0; i < M; i += 6) {
      __m256 sums[6][2] = {};
      for (int k = 0; k < K; ++k) {
        const __m256 l = _mm256_loadu_ps(args.b + k * N + j), r = _mm256_loadu_ps(args.b + k * N + j + 8);
#pragma GCC unroll 6
        for (int q = 0; q < 6; ++q) {
          const __m256 f = _mm256_broadcast_ss(args.a + (i + q) * K + k);
          sums[q][0] = _mm256_fmadd_ps(f, l, sums[q][0]);
          sums[q][1] = _mm256_fmadd_ps(f, r, sums[q][1]);
        }
      }
      for (int q = 0; q < 6; ++q) {
        _mm256_storeu_ps(args.c + (i + q) * N + j, sums[q][0]);
        _mm256_storeu_ps(args.c + (i + q) * N + j + 8, sums[q][1]);
      }
    }
  }
}
extern "C" void launch(const Args& args) {
  if (!whole(args.a, M * K) || !whole(args.b, K * N)) return exactly(args);
  alignas(32) static int a[M][K / 2], b[K / 2][N];
  for (int i = 0; i < M; ++i)
    for (int k = 0; k < K / 2; ++k) a[i][k] = (int(args.a[i * K + 2 * k]) & 0xffff) | int(args.a[i * K + 2 * k + 1]) << 16;
  for (int k = 0; k < K / 2; ++k)
    for (int j = 0; j < N; ++j) b[k][j] = (int(args.b[2 * k * N + j]) & 0xffff) | int(args.b[(2 * k + 1) * N + j]) << 16;
  for (int j = 0; j < N; j += 16) {
    for (int i = 0; i < M; i += 6) {
      __m256i sums[6][2] = {};
      for (int k = 0; k < K / 2; ++k) {
        const __m256i l = _mm256_load_si256(reinterpret_cast<const __m256i*>(&b[k][j]));
        const __m256i r = _mm256_load_si256(reinterpret_cast<const __m256i*>(&b[k][j + 8]));
#pragma GCC unroll 6
        for (int q = 0; q < 6; ++q) {
          const __m256i f = _mm256_set1_epi32(a[i + q][k]);
          sums[q][0] = _mm256_add_epi32(sums[q][0], _mm256_madd_epi16(f, l));
          sums[q][1] = _mm256_add_epi32(sums[q][1], _mm256_madd_epi16(f, r));
        }
      }
      for (int q = 0; q < 6; ++q) {
        _mm256_storeu_ps(args.c + (i + q) * N + j, _mm256_cvtepi32_ps(sums[q][0]));
        _mm256_storeu_ps(args.c + (i + q) * N + j + 8, _mm256_cvtepi32_ps(sums[q][1]));
      }
    }
  }
}
