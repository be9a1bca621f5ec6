// SPDX-License-Identifier: Apache-2.0
#include "task.h"

struct alignas(16) Pack {
  __nv_bfloat16 at[8];
};
__device__ inline Pack load(const Pack* from) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  Pack v;
  memcpy(&v, &raw, 16);
  return v;
}
__device__ inline void store(Pack* to, const Pack& v) {
  uint4 raw;
  memcpy(&raw, &v, 16);
  *reinterpret_cast<uint4*>(to) = raw;
}

__device__ inline float silu(float v) { return v * (1.0f / (1.0f + __expf(-v))); }

__global__ void silu_kernel(const Pack* __restrict__ x, Pack* __restrict__ y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N / 8) return;
  Pack p = load(x + i);
#pragma unroll
  for (int k = 0; k < 8; ++k) p.at[k] = __float2bfloat16(silu(__bfloat162float(p.at[k])));
  store(y + i, p);
}
KP_LAUNCH(silu_kernel, kp::dim((N / 8 + 255) / 256), kp::dim(256), 0, arg::x, arg::y)
