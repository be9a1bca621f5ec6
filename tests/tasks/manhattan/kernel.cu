// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void distances(const float* x, const float* z, float* d) {
  __shared__ float xs[16][33], zs[16][33];
  const int u = threadIdx.x, v = threadIdx.y;
  float sum = 0;
  for (int k = 0; k < K; k += 32) {
    for (int h = 0; h < 32; h += 16) {
      xs[v][u + h] = x[(blockIdx.y * 16 + v) * K + k + u + h];
      zs[v][u + h] = z[(blockIdx.x * 16 + v) * K + k + u + h];
    }
    __syncthreads();
    for (int t = 0; t < 32; ++t) sum += fabsf(xs[v][t] - zs[u][t]);
    __syncthreads();
  }
  d[(blockIdx.y * 16 + v) * N + blockIdx.x * 16 + u] = sum;
}
KP_LAUNCH(distances, kp::dim(N / 16, M / 16), kp::dim(16, 16), 0, arg::x, arg::z, arg::d)
