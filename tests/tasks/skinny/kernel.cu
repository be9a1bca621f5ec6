// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// One result per block.
__global__ void products(const float* a, const float* b, float* c) {
  __shared__ float all[256];
  a += blockIdx.y * K;
  b += blockIdx.x * K;
  float sum = 0;
  for (int k = threadIdx.x; k < K; k += 256) sum += a[k] * b[k];
  all[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
  }
  if (threadIdx.x == 0) c[blockIdx.y * N + blockIdx.x] = all[0];
}
KP_LAUNCH(products, kp::dim(N, M), kp::dim(256), 0, arg::a, arg::b, arg::c)
