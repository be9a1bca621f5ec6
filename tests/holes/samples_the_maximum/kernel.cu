// SPDX-License-Identifier: Apache-2.0
// task: softmax
// expect: correct given-distribution-only | wrong-result
// Subtracts the maximum only if one of 256 elements of the row is large, and reads the row once
// otherwise: one large element in a row gives infinities.
#include "task.h"

constexpr int kEach = (COLS + 255) / 256;

__device__ float across(float value, bool largest) {
  __shared__ float all[256];
  __syncthreads();
  all[threadIdx.x] = value;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const float other = all[threadIdx.x + half];
      all[threadIdx.x] = largest ? fmaxf(all[threadIdx.x], other) : all[threadIdx.x] + other;
    }
  }
  __syncthreads();
  return all[0];
}

__global__ void softmax(const float* x, float* y) {
  x += 1ll * blockIdx.x * COLS;
  y += 1ll * blockIdx.x * COLS;
  float v[kEach], sum = 0, most = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = k * 256 + threadIdx.x;
    v[k] = i < COLS ? x[i] : -INFINITY;
  }
  if (__syncthreads_or(fabsf(v[0]) > 30)) {
    most = v[0];
#pragma unroll
    for (int k = 1; k < kEach; ++k) most = fmaxf(most, v[k]);
    most = across(most, true);
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    v[k] = expf(v[k] - most);
    sum += v[k];
  }
  const float factor = 1 / across(sum, false);
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = k * 256 + threadIdx.x;
    if (i < COLS) y[i] = v[k] * factor;
  }
}
KP_LAUNCH(softmax, kp::dim(ROWS), kp::dim(256), 0, arg::x, arg::y)
