// SPDX-License-Identifier: Apache-2.0
// task: attention
// truth: vectorised=yes threads=all
// K transposed once per call; then scores and output are sums of scaled rows.
#include <cstddef>
#include <vector>

#include "task.h"

static inline float exp_of(float x) {
  x = x < -87.0f ? -87.0f : x;
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return (p * r * r + r + 1.0f) * __builtin_bit_cast(float, (static_cast<int>(n) + 127) << 23);
}

extern "C" void launch(const Args& args) {
  static std::vector<float> kt(std::size_t(D) * KEYS);
  float* const t = kt.data();
#pragma omp parallel
  {
#pragma omp for
    for (int d = 0; d < D; ++d)
      for (int j = 0; j < KEYS; ++j) t[d * KEYS + j] = args.k[j * D + d];
#pragma omp for schedule(static)
    for (int i = 0; i < ROWS; ++i) {
      alignas(64) float p[KEYS];
      alignas(64) float out[D];
      for (int j = 0; j < KEYS; ++j) p[j] = 0;
      for (int d = 0; d < D; ++d) {
        const float q = args.q[i * D + d] * 0.125f;
#pragma omp simd
        for (int j = 0; j < KEYS; ++j) p[j] += q * t[d * KEYS + j];
      }
      float largest = p[0], sum = 0;
#pragma omp simd reduction(max : largest)
      for (int j = 0; j < KEYS; ++j) largest = p[j] > largest ? p[j] : largest;
#pragma omp simd reduction(+ : sum)
      for (int j = 0; j < KEYS; ++j) sum += p[j] = exp_of(p[j] - largest);
      for (int d = 0; d < D; ++d) out[d] = 0;
      for (int j = 0; j < KEYS; ++j) {
#pragma omp simd
        for (int d = 0; d < D; ++d) out[d] += p[j] * args.v[j * D + d];
      }
      const float scale = 1 / sum;
#pragma omp simd
      for (int d = 0; d < D; ++d) args.y[i * D + d] = out[d] * scale;
    }
  }
}
