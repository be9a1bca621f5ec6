// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 1024;
constexpr int kEach = COLS / 4 / kThreads;
static_assert(kEach * 4 * kThreads == COLS);

template <class F>
__device__ float reduce(float v, F f) {
  __shared__ float part[32];
  for (int m = 16; m > 0; m /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, m));
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[threadIdx.x % 32];
  for (int m = 16; m > 0; m /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, m));
  return v;
}

// The row stays in registers: it is read once.
__global__ void __launch_bounds__(kThreads) softmax(const float* x, float* y) {
  const float4* row = reinterpret_cast<const float4*>(x) + blockIdx.x * (COLS / 4);
  float4* out = reinterpret_cast<float4*>(y) + blockIdx.x * (COLS / 4);
  float4 v[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) v[k] = row[k * kThreads + threadIdx.x];
  float m = -3e38f;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    m = fmaxf(m, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
  }
  m = reduce(m, [](float a, float b) { return fmaxf(a, b); });
  float s = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    v[k] = make_float4(__expf(v[k].x - m), __expf(v[k].y - m), __expf(v[k].z - m),
                       __expf(v[k].w - m));
    s += v[k].x + v[k].y + v[k].z + v[k].w;
  }
  const float scale = 1.0f / reduce(s, [](float a, float b) { return a + b; });
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    out[k * kThreads + threadIdx.x] =
        make_float4(v[k].x * scale, v[k].y * scale, v[k].z * scale, v[k].w * scale);
  }
}
KP_LAUNCH(softmax, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::y)
