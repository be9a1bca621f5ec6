// SPDX-License-Identifier: Apache-2.0
#include "task.h"

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
  float largest = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < COLS; i += 256) largest = fmaxf(largest, x[i]);
  largest = across(largest, true);
  for (int i = threadIdx.x; i < COLS; i += 256) sum += expf(x[i] - largest);
  sum = across(sum, false);
  for (int i = threadIdx.x; i < COLS; i += 256) y[i] = expf(x[i] - largest) / sum;
}
KP_LAUNCH(softmax, kp::dim(ROWS), kp::dim(256), 0, arg::x, arg::y)
