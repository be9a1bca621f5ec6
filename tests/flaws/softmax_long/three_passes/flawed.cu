// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 256;

template <class F>
__device__ float reduce(float v, F f) {
  __shared__ float part[kThreads / 32];
  for (int m = 16; m > 0; m /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, m));
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[0];
  for (int k = 1; k < kThreads / 32; ++k) v = f(v, part[k]);
  return v;
}

__global__ void __launch_bounds__(kThreads) softmax(const float* x, float* y) {
  const float4* row = reinterpret_cast<const float4*>(x) + blockIdx.x * (COLS / 4);
  float4* out = reinterpret_cast<float4*>(y) + blockIdx.x * (COLS / 4);
  float m = -3e38f;
#pragma unroll 4
  for (int j = threadIdx.x; j < COLS / 4; j += kThreads) {
    const float4 v = row[j];
    m = fmaxf(m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  m = reduce(m, [](float a, float b) { return fmaxf(a, b); });
  float s = 0;
#pragma unroll 4
  for (int j = threadIdx.x; j < COLS / 4; j += kThreads) {
    const float4 v = row[j];
    s += __expf(v.x - m) + __expf(v.y - m) + __expf(v.z - m) + __expf(v.w - m);
  }
  const float scale = 1.0f / reduce(s, [](float a, float b) { return a + b; });
#pragma unroll 4
  for (int j = threadIdx.x; j < COLS / 4; j += kThreads) {
    const float4 v = row[j];
    out[j] = make_float4(__expf(v.x - m) * scale, __expf(v.y - m) * scale, __expf(v.z - m) * scale,
                         __expf(v.w - m) * scale);
  }
}
KP_LAUNCH(softmax, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::y)
