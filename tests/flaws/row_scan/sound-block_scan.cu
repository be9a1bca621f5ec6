// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// 512 threads per row, two vectors of four each: sums of threads by shuffles, of warps by one warp.
constexpr int kThreads = 512;
static_assert(COLS == kThreads * 8);

__global__ void __launch_bounds__(kThreads)
    scan(const float4* __restrict__ x, float4* __restrict__ y) {
  __shared__ float totals[2][kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  x += blockIdx.x * (COLS / 4);
  y += blockIdx.x * (COLS / 4);
  float4 v[2] = {x[threadIdx.x], x[kThreads + threadIdx.x]};
  float before[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    v[h].y += v[h].x;
    v[h].z += v[h].y;
    v[h].w += v[h].z;
    float s = v[h].w;
#pragma unroll
    for (int m = 1; m < 32; m *= 2) {
      const float u = __shfl_up_sync(0xffffffffu, s, m);
      if (lane >= m) s += u;
    }
    if (lane == 31) totals[h][warp] = s;
    before[h] = s - v[h].w;
  }
  __syncthreads();
  float sum[2] = {0, 0}, half = 0;
#pragma unroll
  for (int k = 0; k < kThreads / 32; ++k) {
    if (k < warp) sum[0] += totals[0][k], sum[1] += totals[1][k];
    half += totals[0][k];
  }
  sum[1] += half;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float b = before[h] + sum[h];
    y[h * kThreads + threadIdx.x] = make_float4(v[h].x + b, v[h].y + b, v[h].z + b, v[h].w + b);
  }
}
KP_LAUNCH(scan, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::y)
