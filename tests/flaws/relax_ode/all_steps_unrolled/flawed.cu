// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kEach = 8;

__device__ inline void step(float& x) {
  const float a = 1.0f - x * x * x;
  const float xb = x + 0.025f * a, b = 1.0f - xb * xb * xb;
  const float xc = x + 0.025f * b, c = 1.0f - xc * xc * xc;
  const float xd = x + 0.05f * c, d = 1.0f - xd * xd * xd;
  x += 0.05f / 6.0f * (a + 2.0f * b + 2.0f * c + d);
}

__global__ void __launch_bounds__(64) relax(const float* x0, float* y) {
  const int first = blockIdx.x * 64 * kEach + threadIdx.x;
  float x[kEach];
  for (int k = 0; k < kEach; ++k) x[k] = x0[first + k * 64];
#pragma unroll
  for (int s = 0; s < 128; ++s) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) step(x[k]);
  }
  for (int k = 0; k < kEach; ++k) y[first + k * 64] = x[k];
}
KP_LAUNCH(relax, kp::dim(N / 64 / kEach), kp::dim(64), 0, arg::x, arg::y)
