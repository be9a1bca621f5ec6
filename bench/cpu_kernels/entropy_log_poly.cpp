// SPDX-License-Identifier: Apache-2.0
// task: entropy
// truth: vectorised=yes threads=all
// A logarithm by exponent and polynomial in AVX2 or AVX-512 lanes; libm for the tail only.
#include <cmath>
#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "task.h"

namespace {
#if defined(__AVX512F__)
constexpr int L = 16;
#else
constexpr int L = 8;
#endif
typedef float Vec __attribute__((vector_size(4 * L), aligned(4)));
typedef int Ints __attribute__((vector_size(4 * L)));

inline Vec fma_of(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
  return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

inline Vec all(float v) { return Vec{} + v; }

// p log p for normal p, and 0 for zero and denormals (whose p log p is below 2e-36).
inline Vec term(Vec p) {
  const Ints bits = (Ints)p;
  Ints e = (bits - 0x3f3504f3) >> 23;  // mantissa in [sqrt(1/2), sqrt 2)
  const Vec f = (Vec)(bits - (e << 23)) - 1.0f;
  const Vec n = __builtin_convertvector(e, Vec);
  Vec q = all(7.0376836292e-2f);
  q = fma_of(q, f, all(-1.1514610310e-1f));
  q = fma_of(q, f, all(1.1676998740e-1f));
  q = fma_of(q, f, all(-1.2420140846e-1f));
  q = fma_of(q, f, all(1.4249322787e-1f));
  q = fma_of(q, f, all(-1.6668057665e-1f));
  q = fma_of(q, f, all(2.0000714765e-1f));
  q = fma_of(q, f, all(-2.4999993993e-1f));
  q = fma_of(q, f, all(3.3333331174e-1f));
  const Vec z = f * f;
  Vec y = q * f * z;
  y = fma_of(n, all(-2.12194440e-4f), y);
  y = fma_of(z, all(-0.5f), y);
  const Vec log = fma_of(n, all(0.693359375f), f + y);
  return p >= 1.17549435e-38f ? p * log : Vec{};
}
}  // namespace

extern "C" void launch(const Args& args) {
#pragma omp parallel for schedule(guided)
  for (int row = 0; row < ROWS; ++row) {
    const float* p = args.p + row * COLS;
    Vec s0{}, s1{};
    int j = 0;
    for (; j + 2 * L <= COLS; j += 2 * L) {
      s0 += term(*reinterpret_cast<const Vec*>(p + j));
      s1 += term(*reinterpret_cast<const Vec*>(p + j + L));
    }
    s0 += s1;
    float sum = 0;
    for (int l = 0; l < L; ++l) sum += s0[l];
    for (; j < COLS; ++j)
      if (p[j] > 0) sum += p[j] * std::log(p[j]);
    args.y[row] = -sum;
  }
}
