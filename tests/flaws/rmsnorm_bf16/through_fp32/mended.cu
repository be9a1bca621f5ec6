// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// Eight values a thread and turn, in 16 bytes.
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
constexpr int kThreads = 256, kEach = COLS / 8 / kThreads;
static_assert(kEach * 8 * kThreads == COLS);

__global__ void __launch_bounds__(kThreads)
    normalise(const Eight* x, const Eight* weight, Eight* y) {
  __shared__ float part[kThreads / 32];
  Eight v[kEach];
  float q = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    v[k] = load(x + blockIdx.x * (COLS / 8) + k * kThreads + threadIdx.x);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 f = __bfloat1622float2(v[k].at[j]);
      q += f.x * f.x + f.y * f.y;
    }
  }
  for (int m = 16; m > 0; m /= 2) q += __shfl_xor_sync(0xffffffffu, q, m);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = q;
  __syncthreads();
  q = 0;
#pragma unroll
  for (int k = 0; k < kThreads / 32; ++k) q += part[k];
  const float scale = rsqrtf(q / COLS + 1e-6f);
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int at = blockIdx.x * (COLS / 8) + k * kThreads + threadIdx.x;
    const Eight w = load(weight + k * kThreads + threadIdx.x);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 f = __bfloat1622float2(v[k].at[j]), g = __bfloat1622float2(w.at[j]);
      v[k].at[j] = __floats2bfloat162_rn(f.x * scale * g.x, f.y * scale * g.y);
    }
    store(y + at, v[k]);
  }
}
KP_LAUNCH(normalise, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::weight, arg::y)
