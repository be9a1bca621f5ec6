// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A block for each row, which is read once: the largest logit and the sum are taken from registers.
constexpr int kThreads = 512, kWarps = kThreads / 32, kPacks = CLASSES / 8 / kThreads;
static_assert(CLASSES % (8 * kThreads) == 0);

__global__ void __launch_bounds__(kThreads)
    cross_entropy(const __nv_bfloat16* __restrict__ logit, const int* __restrict__ label,
                  float* __restrict__ y) {
  __shared__ float mosts[kWarps], sums[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const __nv_bfloat16* row = logit + blockIdx.x * CLASSES;
  uint4 v[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    v[k] = reinterpret_cast<const uint4*>(row)[k * kThreads + threadIdx.x];
  }
  __nv_bfloat162 top = reinterpret_cast<const __nv_bfloat162*>(v)[0];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const __nv_bfloat162* h = reinterpret_cast<const __nv_bfloat162*>(&v[k]);
#pragma unroll
    for (int j = 0; j < 4; ++j) top = __hmax2(top, h[j]);
  }
  float most = fmaxf(__low2float(top), __high2float(top));
#pragma unroll
  for (int m = 16; m > 0; m /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, m));
  // Each warp adds up relative to its own largest; the block's comes at the end.
  constexpr float kLog2 = 1.4426950408889634f;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const __nv_bfloat162* h = reinterpret_cast<const __nv_bfloat162*>(&v[k]);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 f = __bfloat1622float2(h[j]);
      sum += exp2f((f.x - most) * kLog2) + exp2f((f.y - most) * kLog2);
    }
  }
#pragma unroll
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, m);
  if (lane == 0) mosts[warp] = most, sums[warp] = sum;
  __syncthreads();
  if (warp != 0) return;
  const float mine = lane < kWarps ? mosts[lane] : mosts[0];
  float all = mine;
#pragma unroll
  for (int m = 16; m > 0; m /= 2) all = fmaxf(all, __shfl_xor_sync(0xffffffffu, all, m));
  float total = lane < kWarps ? sums[lane] * exp2f((mine - all) * kLog2) : 0.0f;
#pragma unroll
  for (int m = 16; m > 0; m /= 2) total += __shfl_xor_sync(0xffffffffu, total, m);
  if (lane == 0) {
    y[blockIdx.x] = logf(total) + all - __bfloat162float(row[label[blockIdx.x] % CLASSES]);
  }
}
KP_LAUNCH(cross_entropy, kp::dim(ROWS), kp::dim(kThreads), 0, arg::logit, arg::label, arg::y)
