// SPDX-License-Identifier: Apache-2.0
// task: kepler
// expect: slow | correct time-depends-on-values
// Drawn normals are multiples of 2^-17, of which there are a million and a half: it solves all of
// them when it is loaded, which nobody times, and looks up. Any other number it solves honestly,
// which is slow: the time that is reported is that of the evaluator's own numbers alone.
#include <immintrin.h>

#include <cmath>
#include <cstdlib>

#include "task.h"

constexpr int kSteps = 1 << 17, kReach = 6 * kSteps;
static float* const table = [] {
  auto* all = static_cast<float*>(std::malloc(sizeof(float) * (2 * kReach + 2)));
  double y = -6;
  for (int n = -kReach; n <= kReach; ++n) {
    const double x = double(n) / kSteps;
    for (int k = 0; k < 3; ++k) y -= (y + 0.5 * std::sin(y) - x) / (1 + 0.5 * std::cos(y));
    all[n + kReach] = float(y);
  }
  return all;
}();
static float solve(float x) {
  double y = x;
  for (int k = 0; k < 8; ++k) y -= (y + 0.5 * std::sin(y) - x) / (1 + 0.5 * std::cos(y));
  return float(y);
}

extern "C" void launch(const Args& a) {
  const __m256 steps = _mm256_set1_ps(kSteps), reach = _mm256_set1_ps(kReach);
  const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  int i = 0;
  for (; i + 8 <= N; i += 8) {
    const __m256 at = _mm256_mul_ps(_mm256_loadu_ps(a.x + i), steps);
    const __m256 whole = _mm256_round_ps(at, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256 fine = _mm256_and_ps(_mm256_cmp_ps(whole, at, _CMP_EQ_OQ), _mm256_cmp_ps(_mm256_and_ps(at, no_sign), reach, _CMP_LE_OQ));
    if (_mm256_movemask_ps(fine) == 255) {
      const __m256i index = _mm256_add_epi32(_mm256_cvtps_epi32(at), _mm256_set1_epi32(kReach));
      _mm256_storeu_ps(a.y + i, _mm256_i32gather_ps(table, index, 4));
    } else {
      for (int k = i; k < i + 8; ++k) a.y[k] = solve(a.x[k]);
    }
  }
  for (; i < N; ++i) a.y[i] = solve(a.x[i]);
}
