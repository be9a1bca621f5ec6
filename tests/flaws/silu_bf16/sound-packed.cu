// SPDX-License-Identifier: Apache-2.0
#include "task.h"

struct alignas(16) Eight {
  __nv_bfloat162 at[4];
};
__device__ inline Eight load(const Eight* from) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  Eight v;
  memcpy(&v, &raw, 16);
  return v;
}
__device__ inline void store(Eight* to, const Eight& v) {
  uint4 raw;
  memcpy(&raw, &v, 16);
  *reinterpret_cast<uint4*>(to) = raw;
}

__device__ inline float2 silu(float2 v) {
  return {__fdividef(v.x, 1.0f + __expf(-v.x)), __fdividef(v.y, 1.0f + __expf(-v.y))};
}

__global__ void __launch_bounds__(256) kernel(const Eight* __restrict__ x, Eight* __restrict__ y) {
  constexpr int kVectors = N / 8;
  const int first = blockIdx.x * 512 + threadIdx.x;
  Eight v[2];
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    if (first + k * 256 < kVectors) v[k] = load(x + first + k * 256);
  }
#pragma unroll
  for (int k = 0; k < 2; ++k) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      v[k].at[j] = __float22bfloat162_rn(silu(__bfloat1622float2(v[k].at[j])));
    }
    if (first + k * 256 < kVectors) store(y + first + k * 256, v[k]);
  }
}
KP_LAUNCH(kernel, kp::dim((N / 8 + 511) / 512), kp::dim(256), 0, arg::x, arg::y)
