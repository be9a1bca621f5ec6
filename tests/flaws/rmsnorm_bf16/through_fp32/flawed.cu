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

__global__ void __launch_bounds__(kThreads) normalise(const Eight* x, float4* t) {
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
    const float2 a = __bfloat1622float2(v[k].at[0]), b = __bfloat1622float2(v[k].at[1]);
    const float2 c = __bfloat1622float2(v[k].at[2]), d = __bfloat1622float2(v[k].at[3]);
    t[2 * at] = make_float4(a.x * scale, a.y * scale, b.x * scale, b.y * scale);
    t[2 * at + 1] = make_float4(c.x * scale, c.y * scale, d.x * scale, d.y * scale);
  }
}

__global__ void narrow(const float4* t, const Eight* weight, Eight* y) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 a = t[2 * i], b = t[2 * i + 1];
  const Eight w = load(weight + i % (COLS / 8));
  const float2 w0 = __bfloat1622float2(w.at[0]), w1 = __bfloat1622float2(w.at[1]);
  const float2 w2 = __bfloat1622float2(w.at[2]), w3 = __bfloat1622float2(w.at[3]);
  Eight out;
  out.at[0] = __floats2bfloat162_rn(a.x * w0.x, a.y * w0.y);
  out.at[1] = __floats2bfloat162_rn(a.z * w1.x, a.w * w1.y);
  out.at[2] = __floats2bfloat162_rn(b.x * w2.x, b.y * w2.y);
  out.at[3] = __floats2bfloat162_rn(b.z * w3.x, b.w * w3.y);
  store(y + i, out);
}
KP_LAUNCH(normalise, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::workspace)
KP_LAUNCH(narrow, kp::dim(ROWS* kEach), kp::dim(kThreads), 0, arg::workspace, arg::weight, arg::y)
