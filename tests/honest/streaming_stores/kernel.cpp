// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Stores past the cache, and clones of a function for several processors.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstdint>

#include "task.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx2", "default")))
#endif
static void
compute(const float* x, const float* z, float* y, int first, int end) {
  for (int i = first; i < end; ++i) y[i] = 2 * x[i] + z[i];
}

extern "C" void launch(const Args& args) {
  int i = 0;
#ifdef __SSE2__
  while (i < N && reinterpret_cast<std::uintptr_t>(args.y + i) % 16 != 0) ++i;
  compute(args.x, args.z, args.y, 0, i);
  const __m128 two = _mm_set1_ps(2);
  for (; i + 4 <= N; i += 4) {
    const __m128 product = _mm_mul_ps(two, _mm_loadu_ps(args.x + i));
    _mm_stream_ps(args.y + i, _mm_add_ps(product, _mm_loadu_ps(args.z + i)));
  }
  _mm_sfence();
#endif
  compute(args.x, args.z, args.y, i, N);
}
