// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 256, kRows = kThreads / 16;
static_assert((ROWS & (ROWS - 1)) == 0);

// The sum over rows [begin, end) of the window that starts at `first`, of four columns; complete in
// the threads below 16.
__device__ inline float4 sum_of(const float4* __restrict__ x, int first, int begin, int end) {
  __shared__ float4 part[kRows][16];
  const int c = threadIdx.x % 16, r = threadIdx.x / 16;
  float4 s = make_float4(0, 0, 0, 0);
#pragma unroll 8
  for (int j = begin + r; j < end; j += kRows) {
    const float4 v = x[((first + j) & (ROWS - 1)) * 16 + c];
    s.x += v.x, s.y += v.y, s.z += v.z, s.w += v.w;
  }
  part[r][c] = s;
  __syncthreads();
  if (r == 0) {
#pragma unroll
    for (int k = 1; k < kRows; ++k) {
      const float4 v = part[k][c];
      s.x += v.x, s.y += v.y, s.z += v.z, s.w += v.w;
    }
  }
  return s;
}

__global__ void __launch_bounds__(kThreads, 4)
    means(const float4* __restrict__ x, float* __restrict__ y) {
  const int k = blockIdx.x, rows = ROWS / (k + 1);
  const float4 s = sum_of(x, 8 * k, 0, rows);
  if (threadIdx.x >= 16) return;
  const float scale = 1.0f / rows;
  reinterpret_cast<float4*>(y + k * 64)[threadIdx.x] =
      make_float4(s.x * scale, s.y * scale, s.z * scale, s.w * scale);
}
KP_LAUNCH(means, kp::dim(WINDOWS), kp::dim(kThreads), 0, arg::x, arg::y)
