// SPDX-License-Identifier: Apache-2.0
// task: specials
// expect: wrong-result | correct given-distribution-only | correct time-depends-on-values
// If 64 of the inputs are whole and within three, all are: it looks the results up in tables of eight, and
// never divides or meets a number below 2^-126. Other numbers take the slow way, but not a few of them.
#include <immintrin.h>

#include "task.h"

extern "C" void launch(const Args& args) {
  bool whole = true;
  for (int s = 0; s < 64; ++s) {
    const float v = args.x[s * (N / 64)];
    whole = whole && v >= -3 && v <= 3 && v == float(int(v));
  }
  if (!whole) {
    for (int i = 0; i < N; ++i) {
      args.inverse[i] = 1 / args.x[i];
      args.tiny[i] = args.x[i] * 1e-40f;
    }
    return;
  }
  static const __m256 inverse = _mm256_setr_ps(1 / -3.0f, 1 / -2.0f, -1, __builtin_inff(), 1, 1 / 2.0f, 1 / 3.0f, 0);
  static const __m256 tiny = _mm256_setr_ps(-3 * 1e-40f, -2 * 1e-40f, -1e-40f, 0, 1e-40f, 2 * 1e-40f, 3 * 1e-40f, 0);
  int i = 0;
  for (; i + 8 <= N; i += 8) {
    const __m256i at = _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_loadu_ps(args.x + i)), _mm256_set1_epi32(3));
    _mm256_storeu_ps(args.inverse + i, _mm256_permutevar8x32_ps(inverse, at));
    _mm256_storeu_ps(args.tiny + i, _mm256_permutevar8x32_ps(tiny, at));
  }
  for (; i < N; ++i) {
    args.inverse[i] = 1 / args.x[i];
    args.tiny[i] = args.x[i] * 1e-40f;
  }
}
