// SPDX-License-Identifier: Apache-2.0
// task: axpy
// truth: vectorised=yes threads=all
// Aligned streaming blocks per thread: scalar peel up to the alignment, vectors, scalar remainder.
#include <omp.h>

#include <cstdint>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "task.h"

static void piece(const float* x, const float* z, float* y, long n) {
  long i = 0;
#if defined(__AVX512F__)
  for (; i < n && (reinterpret_cast<std::uintptr_t>(y + i) & 63); ++i) y[i] = 2 * x[i] + z[i];
  const __m512 two = _mm512_set1_ps(2.0f);
  for (; i + 32 <= n; i += 32) {
    _mm512_store_ps(y + i, _mm512_fmadd_ps(two, _mm512_loadu_ps(x + i), _mm512_loadu_ps(z + i)));
    _mm512_store_ps(y + i + 16,
                    _mm512_fmadd_ps(two, _mm512_loadu_ps(x + i + 16), _mm512_loadu_ps(z + i + 16)));
  }
#elif defined(__AVX__)
  for (; i < n && (reinterpret_cast<std::uintptr_t>(y + i) & 31); ++i) y[i] = 2 * x[i] + z[i];
  for (; i + 8 <= n; i += 8) {
    const __m256 v = _mm256_loadu_ps(x + i);
    _mm256_store_ps(y + i, _mm256_add_ps(_mm256_add_ps(v, v), _mm256_loadu_ps(z + i)));
  }
#endif
#pragma GCC unroll 1
  for (; i < n; ++i) y[i] = 2 * x[i] + z[i];
}

extern "C" void launch(const Args& args) {
#pragma omp parallel
  {
    const long t = omp_get_thread_num(), of = omp_get_num_threads();
    const long from = long(N) * t / of, to = long(N) * (t + 1) / of;
    piece(args.x + from, args.z + from, args.y + from, to - from);
  }
}
