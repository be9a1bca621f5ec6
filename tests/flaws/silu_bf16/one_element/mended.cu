// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__device__ __nv_bfloat162 silu2(__nv_bfloat162 pair) {
  const float2 v = __bfloat1622float2(pair);
  return __floats2bfloat162_rn(__fdividef(v.x, 1.0f + __expf(-v.x)),
                               __fdividef(v.y, 1.0f + __expf(-v.y)));
}

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

__global__ void silu(const Eight* __restrict__ x, Eight* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    Eight v = load(x + i);
#pragma unroll
    for (int k = 0; k < 4; ++k) v.at[k] = silu2(v.at[k]);
    store(y + i, v);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  silu<<<(N / 8 + 255) / 256, 256, 0, stream>>>(reinterpret_cast<const Eight*>(args.x),
                                                reinterpret_cast<Eight*>(args.y), N / 8);
}
