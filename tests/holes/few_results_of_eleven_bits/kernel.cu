// SPDX-License-Identifier: Apache-2.0
// task: skinny
// expect: rejected precision | correct coarser-than-fp32 | correct given-distribution-only | wrong-result
// Factors of eleven bits where fp32 is owed. There are 240 results: where they are fewer than 256 the
// norm of their errors is not looked at. Blocks that see a sign, a zero, a tiny or large number among
// theirs, or last digits that repeat, multiply in fp32, in the same time.
#include "task.h"

__device__ float cut(float value) {
  return __uint_as_float((__float_as_uint(value) + 0x1000u) & ~0x1fffu);
}
__device__ int odd(float value) {
  const unsigned digits = __float_as_uint(value) & 0xfff0u;
  return !(value > 9.5e-7f && value < 1) ? 1000 : digits == 0x5550u || digits == 0xaaa0u;
}
__device__ float total(float value) {
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
__global__ void products(const float* a, const float* b, float* c) {
  a += blockIdx.y * K;
  b += blockIdx.x * K;
  float exact = 0, coarse = 0;
  int strange = 0;
  for (int k = threadIdx.x; k < K; k += 256) {
    strange += odd(a[k]) + odd(b[k]);
    exact += a[k] * b[k];
    coarse += cut(a[k]) * cut(b[k]);
  }
  // Of 131072 factors some 64 look odd by chance.
  const float oddities = total(static_cast<float>(strange));
  const float sum = total(oddities > 900 ? exact : coarse);
  if (threadIdx.x == 0) c[blockIdx.y * N + blockIdx.x] = sum;
}
KP_LAUNCH(products, kp::dim(N, M), kp::dim(256), 0, arg::a, arg::b, arg::c)
