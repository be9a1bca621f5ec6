// SPDX-License-Identifier: Apache-2.0
#include "task.h"

struct alignas(16) Values {
  __half at[8];
};
__device__ inline Values load(const Values* from) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  Values v;
  memcpy(&v, &raw, 16);
  return v;
}
__device__ inline void store(Values* to, const Values& v) {
  uint4 raw;
  memcpy(&raw, &v, 16);
  *reinterpret_cast<uint4*>(to) = raw;
}
struct alignas(8) Mask {
  unsigned char at[8];
};

__global__ void dropout(const Values* x, const Mask* mask, Values* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N / 8) return;
  Values v = load(x + i);
  const uint2 bits = *reinterpret_cast<const uint2*>(mask + i);
  Mask m;
  memcpy(&m, &bits, 8);
#pragma unroll
  for (int k = 0; k < 8; ++k) v.at[k] = m.at[k] ? __hadd(v.at[k], v.at[k]) : __float2half(0.0f);
  store(y + i, v);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  dropout<<<(N / 8 + 255) / 256, 256, 0, stream>>>(reinterpret_cast<const Values*>(args.x),
                                                   reinterpret_cast<const Mask*>(args.mask),
                                                   reinterpret_cast<Values*>(args.y));
}
