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

// A block for each 1024 rows of a window.
constexpr int kPiece = 1024;

__global__ void __launch_bounds__(kThreads, 4)
    means(const float4* __restrict__ x, float* __restrict__ y) {
  const int k = blockIdx.y, rows = ROWS / (k + 1), begin = blockIdx.x * kPiece;
  if (begin >= rows) return;
  const float4 s = sum_of(x, 8 * k, begin, min(rows, begin + kPiece));
  if (threadIdx.x >= 16) return;
  const float scale = 1.0f / rows;
  float* to = y + k * 64 + 4 * threadIdx.x;
  atomicAdd(to, s.x * scale);
  atomicAdd(to + 1, s.y * scale);
  atomicAdd(to + 2, s.z * scale);
  atomicAdd(to + 3, s.w * scale);
}
KP_MEMSET(arg::y, 0, WINDOWS * 64 * 4)
KP_LAUNCH(means, kp::dim((ROWS + kPiece - 1) / kPiece, WINDOWS), kp::dim(kThreads), 0, arg::x,
          arg::y)
