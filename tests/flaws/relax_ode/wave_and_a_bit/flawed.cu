// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 1024, kEach = 8;

__device__ inline float rate(float x) { return 1.0f - x * x * x; }

__global__ void __launch_bounds__(kThreads) relax(const float* x0, float* y) {
  float x[kEach];
  const int first = blockIdx.x * kThreads * kEach + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kEach; ++k) x[k] = x0[first + k * kThreads];
#pragma unroll 1
  for (int s = 0; s < 128; ++s) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const float a = rate(x[k]);
      const float b = rate(x[k] + 0.025f * a);
      const float c = rate(x[k] + 0.025f * b);
      const float d = rate(x[k] + 0.05f * c);
      x[k] += 0.05f / 6.0f * (a + 2.0f * b + 2.0f * c + d);
    }
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) y[first + k * kThreads] = x[k];
}
static_assert(N % (kThreads * kEach) == 0);
KP_LAUNCH(relax, kp::dim(N / (kThreads * kEach)), kp::dim(kThreads), 0, arg::x, arg::y)
