// SPDX-License-Identifier: Apache-2.0
// Row softmax in two sweeps, the largest value and the sum together in the first, for KernelBench's
// 23_Softmax.
#include "task.h"

constexpr int kThreads = 1024;

struct Partial {
  float largest, sum;
};

__device__ Partial combine(Partial a, Partial b) {
  const float largest = fmaxf(a.largest, b.largest);
  return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

__global__ void __launch_bounds__(kThreads) softmax(const float4* x, float4* y) {
  constexpr long long kVectors = dim_ / 4;
  x += blockIdx.x * kVectors;
  y += blockIdx.x * kVectors;
  Partial mine = {-3.4e38f, 0.0f};
  for (long long i = threadIdx.x; i < kVectors; i += kThreads) {
    const float4 v = x[i];
    const float largest = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
    mine = combine(mine, {largest, __expf(v.x - largest) + __expf(v.y - largest) +
                                       __expf(v.z - largest) + __expf(v.w - largest)});
  }
  __shared__ Partial warps[kThreads / 32];
  for (int mask = 16; mask > 0; mask /= 2) {
    mine = combine(mine, {__shfl_xor_sync(~0u, mine.largest, mask),
                          __shfl_xor_sync(~0u, mine.sum, mask)});
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  Partial all = warps[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) all = combine(all, warps[warp]);
  const float scale = 1.0f / all.sum;
  for (long long i = threadIdx.x; i < kVectors; i += kThreads) {
    const float4 v = x[i];
    y[i] = {__expf(v.x - all.largest) * scale, __expf(v.y - all.largest) * scale,
            __expf(v.z - all.largest) * scale, __expf(v.w - all.largest) * scale};
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  static_assert(dim_ % 4 == 0, "rows of whole float4");
  softmax<<<batch_size, kThreads, 0, stream>>>(reinterpret_cast<const float4*>(args.x),
                                               reinterpret_cast<float4*>(args.out));
}
