// SPDX-License-Identifier: Apache-2.0
#include "task.h"

struct Pack {  // begins anywhere
  __nv_bfloat16 at[8];
};

__global__ void move(const Pack* from, Pack* to) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N / 8) to[i] = from[i];
}

__global__ void clear_ends(__nv_bfloat16* y) {
  y[threadIdx.x < 5 ? threadIdx.x : N + threadIdx.x] = __float2bfloat16(0.0f);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  move<<<(N / 8 + 255) / 256, 256, 0, stream>>>(reinterpret_cast<const Pack*>(args.x + 2),
                                                reinterpret_cast<Pack*>(args.y + 5));
  clear_ends<<<1, 8, 0, stream>>>(args.y);
}
