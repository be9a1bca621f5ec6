// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kTile = 4096;
static_assert(N % kTile == 0);

// The sum of all threads before this one; `total` becomes the sum of all.
__device__ inline int before(int mine, int* total) {
  __shared__ int warps[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int s = mine;
#pragma unroll
  for (int m = 1; m < 32; m *= 2) {
    const int u = __shfl_up_sync(0xffffffffu, s, m);
    if (lane >= m) s += u;
  }
  __syncthreads();
  if (lane == 31) warps[warp] = s;
  __syncthreads();
  int w = warps[lane];
#pragma unroll
  for (int m = 1; m < 32; m *= 2) {
    const int u = __shfl_up_sync(0xffffffffu, w, m);
    if (lane >= m) w += u;
  }
  *total = __shfl_sync(0xffffffffu, w, 31);
  const int first = __shfl_sync(0xffffffffu, w, warp == 0 ? 0 : warp - 1);
  return s - mine + (warp == 0 ? 0 : first);
}

__global__ void __launch_bounds__(1024)
    add_up(const int4* __restrict__ count, int* __restrict__ sums) {
  const int4 v = count[blockIdx.x * 1024 + threadIdx.x];
  int total;
  before(v.x + v.y + v.z + v.w, &total);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// The tiles before this one, and then the tile.
__global__ void __launch_bounds__(1024)
    scan(const int4* __restrict__ count, const int* __restrict__ sums, int4* __restrict__ y) {
  const int t = blockIdx.x;
  const int4 v = count[t * 1024 + threadIdx.x];
  int mine = 0, sum, total;
  for (int k = threadIdx.x; k < t; k += 1024) mine += sums[k];
  before(mine, &sum);
  const int s = sum + before(v.x + v.y + v.z + v.w, &total);
  y[t * 1024 + threadIdx.x] = make_int4(s, s + v.x, s + v.x + v.y, s + v.x + v.y + v.z);
}
KP_LAUNCH(add_up, kp::dim(N / kTile), kp::dim(1024), 0, arg::count, arg::workspace)
KP_LAUNCH(scan, kp::dim(N / kTile), kp::dim(1024), 0, arg::count, arg::workspace, arg::y)
