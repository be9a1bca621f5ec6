// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__host__ __device__ constexpr float coefficient(int m, int j, int k) {
  return ((j * 17 + k * 31 + m * 5 + j * k * (m + 3)) % 64 - 31.5f) / 64;
}

__global__ void __launch_bounds__(128) mix(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ __align__(16) float matrix[48][48];
  for (int e = threadIdx.x; e < 48 * 48; e += 128) {
    matrix[e / 48][e % 48] = coefficient(blockIdx.x % 16, e / 48, e % 48);
  }
  __syncthreads();
  const int i = blockIdx.x * 128 + threadIdx.x;
  float v[48];
#pragma unroll
  for (int k = 0; k < 48; ++k) v[k] = x[k * N + i];
#pragma unroll 4
  for (int j = 0; j < 48; ++j) {
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 48; ++k) sum += matrix[j][k] * v[k];
    y[j * N + i] = sum;
  }
}
static_assert(N % 128 == 0);
KP_LAUNCH(mix, kp::dim(N / 128), kp::dim(128), 0, arg::x, arg::y)
