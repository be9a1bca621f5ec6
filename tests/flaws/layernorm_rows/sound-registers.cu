// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A block of 256 threads for each row, whose values are read once and stay in registers; the
// variance is that of the centred values.
constexpr int kThreads = 256, kWarps = kThreads / 32, kVectors = COLS / 4 / kThreads;
static_assert(COLS % (4 * kThreads) == 0);

__device__ inline float block_sum(float s, float* part) {
#pragma unroll
  for (int m = 16; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
#pragma unroll
  for (int k = 0; k < kWarps; ++k) s += part[k];
  return s;
}

__global__ void __launch_bounds__(kThreads)
    normalise(const float4* __restrict__ x, float4* __restrict__ y) {
  __shared__ __align__(16) float part[2][kWarps];
  x += blockIdx.x * (COLS / 4) + threadIdx.x;
  y += blockIdx.x * (COLS / 4) + threadIdx.x;
  float4 v[kVectors];
  float s = 0, q = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) v[k] = x[k * kThreads];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) s += (v[k].x + v[k].y) + (v[k].z + v[k].w);
  const float mean = block_sum(s, part[0]) * (1.0f / COLS);
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    v[k].x -= mean, v[k].y -= mean, v[k].z -= mean, v[k].w -= mean;
    q += (v[k].x * v[k].x + v[k].y * v[k].y) + (v[k].z * v[k].z + v[k].w * v[k].w);
  }
  const float scale = rsqrtf(block_sum(q, part[1]) * (1.0f / COLS) + 1e-5f);
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    y[k * kThreads] = make_float4(v[k].x * scale, v[k].y * scale, v[k].z * scale, v[k].w * scale);
  }
}
KP_LAUNCH(normalise, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::y)
