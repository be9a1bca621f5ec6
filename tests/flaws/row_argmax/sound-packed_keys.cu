// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// The value in an order that integers have and the place, in one 64-bit key.
__device__ inline unsigned long long key(float v, int at) {
  const unsigned bits = __float_as_uint(v + 0.0f);
  const unsigned order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<unsigned long long>(order) << 32 | (0xffffffffu - at);
}
__device__ inline unsigned long long larger(unsigned long long a, unsigned long long b) {
  return a > b ? a : b;
}

__global__ void __launch_bounds__(512) argmax(const float4* __restrict__ x, int* __restrict__ y) {
  __shared__ unsigned long long part[16];
  const float4* row = x + blockIdx.x * (COLS / 4);
  float best[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
  int at[4] = {};
#pragma unroll 8
  for (int j = threadIdx.x; j < COLS / 4; j += 512) {
    const float4 v = row[j];
    if (v.x > best[0]) best[0] = v.x, at[0] = 4 * j;
    if (v.y > best[1]) best[1] = v.y, at[1] = 4 * j + 1;
    if (v.z > best[2]) best[2] = v.z, at[2] = 4 * j + 2;
    if (v.w > best[3]) best[3] = v.w, at[3] = 4 * j + 3;
  }
  unsigned long long k = larger(larger(key(best[0], at[0]), key(best[1], at[1])),
                                larger(key(best[2], at[2]), key(best[3], at[3])));
  for (int m = 16; m > 0; m /= 2) k = larger(k, __shfl_xor_sync(0xffffffffu, k, m));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = k;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < 16; ++w) k = larger(k, part[w]);
  y[blockIdx.x] = static_cast<int>(0xffffffffu - static_cast<unsigned>(k));
}
KP_LAUNCH(argmax, kp::dim(ROWS), kp::dim(512), 0, arg::x, arg::y)
