// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A block is a row; every thread has its columns and every thread its keys.
__global__ void attention(const float* q, const float* k, const float* v, float* y) {
  __shared__ float p[KEYS], all[256];
  const int i = blockIdx.x, t = threadIdx.x;
  float largest = -1e30f;
  for (int j = t; j < KEYS; j += 256) {
    float sum = 0;
    for (int d = 0; d < D; ++d) sum += q[i * D + d] * k[j * D + d];
    p[j] = sum / 8;
    largest = max(largest, p[j]);
  }
  all[t] = largest;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) all[t] = max(all[t], all[t + half]);
  }
  __syncthreads();
  largest = all[0];
  __syncthreads();
  float sum = 0;
  for (int j = t; j < KEYS; j += 256) sum += p[j] = exp(p[j] - largest);
  all[t] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) all[t] += all[t + half];
  }
  __syncthreads();
  sum = all[0];
  for (int d = t; d < D; d += 256) {
    float result = 0;
    for (int j = 0; j < KEYS; ++j) result += p[j] * v[j * D + d];
    y[i * D + d] = result / sum;
  }
}
KP_LAUNCH(attention, kp::dim(ROWS), kp::dim(256), 0, arg::q, arg::k, arg::v, arg::y)
