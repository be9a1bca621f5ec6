// SPDX-License-Identifier: Apache-2.0
// task: long_matmul
// truth: vectorised=yes threads=all
// Tiles of 4 x 4 dot products along K, each with its own vector of sums, K in chunks.
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include "task.h"

namespace {
#if defined(__AVX512F__)
using V = __m512;
constexpr int L = 16;
inline V load(const float* p) { return _mm512_loadu_ps(p); }
inline V mac(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
inline V none() { return _mm512_setzero_ps(); }
inline float across(V v) { return _mm512_reduce_add_ps(v); }
#elif defined(__AVX2__) && defined(__FMA__)
using V = __m256;
constexpr int L = 8;
inline V load(const float* p) { return _mm256_loadu_ps(p); }
inline V mac(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
inline V none() { return _mm256_setzero_ps(); }
inline float across(V v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
#else
typedef float V __attribute__((vector_size(16), aligned(4)));
constexpr int L = 4;
inline V load(const float* p) { return *reinterpret_cast<const V*>(p); }
inline V mac(V a, V b, V c) { return a * b + c; }
inline V none() { return V{}; }
inline float across(V v) { return v[0] + v[1] + v[2] + v[3]; }
#endif

template <int R, int S>
void dots(const float* a, const float* b, float* c) {
  V sum[R][S];
  for (int r = 0; r < R; ++r)
    for (int s = 0; s < S; ++s) sum[r][s] = none();
  int k = 0;
  for (; k + L <= K; k += L) {
    V bs[S];
#pragma GCC unroll 4
    for (int s = 0; s < S; ++s) bs[s] = load(b + long(s) * K + k);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const V x = load(a + long(r) * K + k);
#pragma GCC unroll 4
      for (int s = 0; s < S; ++s) sum[r][s] = mac(x, bs[s], sum[r][s]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int s = 0; s < S; ++s) {
      float total = across(sum[r][s]);
      for (int rest = K / L * L; rest < K; ++rest)
        total += a[long(r) * K + rest] * b[long(s) * K + rest];
      c[long(r) * N + s] = total;
    }
  }
}
}  // namespace

extern "C" void launch(const Args& args) {
#pragma omp parallel for collapse(2) schedule(static)
  for (int i = 0; i < M; i += 4) {
    for (int j = 0; j < N; j += 4) {
      const float* a = args.a + long(i) * K;
      const float* b = args.b + long(j) * K;
      float* c = args.c + long(i) * N + j;
      if (i + 4 <= M && j + 4 <= N) {
        dots<4, 4>(a, b, c);
      } else {
        for (int r = 0; i + r < M && r < 4; ++r)
          for (int s = 0; j + s < N && s < 4; ++s)
            dots<1, 1>(a + long(r) * K, b + long(s) * K, c + long(r) * N + s);
      }
    }
  }
}
