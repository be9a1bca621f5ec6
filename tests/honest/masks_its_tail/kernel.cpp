// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Reads whole vectors, also the last one, which lies within the tensor's alignment, and stores only
// what belongs to its output.
#include <immintrin.h>

#include "task.h"

extern "C" void launch(const Args& args) {
  int i = 0;
  for (; i + 4 <= N; i += 4) {
    const __m128 x = _mm_load_ps(args.x + i), z = _mm_load_ps(args.z + i);
    _mm_store_ps(args.y + i, _mm_add_ps(_mm_add_ps(x, x), z));
  }
  if (i == N) return;
  const __m128 x = _mm_load_ps(args.x + i), z = _mm_load_ps(args.z + i);
  alignas(16) float last[4];
  _mm_store_ps(last, _mm_add_ps(_mm_add_ps(x, x), z));
  for (int k = 0; i + k < N; ++k) args.y[i + k] = last[k];
}
