// SPDX-License-Identifier: Apache-2.0
// task: softmax
// expect: correct
// Reads each row once, into registers; maximum and sum by warp shuffles.
#include "task.h"

constexpr int kThreads = 512, kEach = (COLS + kThreads - 1) / kThreads;

template <class Combine>
__device__ float across(float v, float neutral, Combine combine) {
  __shared__ float of_warp[kThreads / 32];
  for (int lane = 16; lane > 0; lane /= 2) v = combine(v, __shfl_xor_sync(~0u, v, lane));
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < kThreads / 32 ? of_warp[threadIdx.x % 32] : neutral;
  for (int lane = 16; lane > 0; lane /= 2) v = combine(v, __shfl_xor_sync(~0u, v, lane));
  return v;
}

__global__ void __launch_bounds__(kThreads) softmax(const float* x, float* y) {
  x += 1ll * blockIdx.x * COLS;
  y += 1ll * blockIdx.x * COLS;
  float v[kEach], most = -INFINITY, sum = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = k * kThreads + threadIdx.x;
    v[k] = i < COLS ? __ldg(x + i) : -INFINITY;
    most = fmaxf(most, v[k]);
  }
  most = across(most, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    v[k] = exp2f((v[k] - most) * 1.4426950408889634f);
    sum += v[k];
  }
  sum = across(sum, 0.0f, [](float a, float b) { return a + b; });
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = k * kThreads + threadIdx.x;
    if (i < COLS) y[i] = __fdividef(v[k], sum);
  }
}
KP_LAUNCH(softmax, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::y)
