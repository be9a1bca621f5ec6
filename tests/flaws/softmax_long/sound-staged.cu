// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// The row waits in shared memory between its one read and its one write.
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

struct Pair {
  float m, s;
};
__device__ inline Pair join(Pair a, Pair b) {
  const float m = fmaxf(a.m, b.m);
  return {m, a.s * __expf(a.m - m) + b.s * __expf(b.m - m)};
}

__global__ void __launch_bounds__(kThreads) softmax(const float4* x, float4* y) {
  extern __shared__ float4 row[];
  __shared__ Pair part[kWarps];
  x += blockIdx.x * (COLS / 4);
  y += blockIdx.x * (COLS / 4);
  Pair all{-3e38f, 0};
#pragma unroll 8
  for (int j = threadIdx.x; j < COLS / 4; j += kThreads) {
    const float4 v = x[j];
    row[j] = v;
    const float m = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
    const float s = __expf(v.x - m) + __expf(v.y - m) + __expf(v.z - m) + __expf(v.w - m);
    all = join(all, Pair{m, s});
  }
  for (int k = 16; k > 0; k /= 2) {
    all = join(all, Pair{__shfl_xor_sync(0xffffffffu, all.m, k),
                         __shfl_xor_sync(0xffffffffu, all.s, k)});
  }
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = all;
  __syncthreads();
  all = part[0];
  for (int k = 1; k < kWarps; ++k) all = join(all, part[k]);
  const float scale = 1.0f / all.s;
#pragma unroll 4
  for (int j = threadIdx.x; j < COLS / 4; j += kThreads) {
    const float4 v = row[j];
    y[j] = make_float4(__expf(v.x - all.m) * scale, __expf(v.y - all.m) * scale,
                       __expf(v.z - all.m) * scale, __expf(v.w - all.m) * scale);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(softmax, cudaFuncAttributeMaxDynamicSharedMemorySize, COLS * 4);
  softmax<<<ROWS, kThreads, COLS * 4, stream>>>(reinterpret_cast<const float4*>(args.x),
                                                reinterpret_cast<float4*>(args.y));
}
