// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__device__ float sum_of(float value) {
  __shared__ float all[256];
  __syncthreads();
  all[threadIdx.x] = value;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
  }
  __syncthreads();
  return all[0];
}

__global__ void layernorm(const float* x, const float* gamma, const float* beta, float* y) {
  x += 1ll * blockIdx.x * COLS;
  y += 1ll * blockIdx.x * COLS;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < COLS; i += 256) sum += x[i];
  const float mean = sum_of(sum) / COLS;
  for (int i = threadIdx.x; i < COLS; i += 256) squares += (x[i] - mean) * (x[i] - mean);
  const float scale = rsqrtf(sum_of(squares) / COLS + 1e-5f);
  for (int i = threadIdx.x; i < COLS; i += 256) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
}
KP_LAUNCH(layernorm, kp::dim(ROWS), kp::dim(256), 0, arg::x, arg::gamma, arg::beta, arg::y)
