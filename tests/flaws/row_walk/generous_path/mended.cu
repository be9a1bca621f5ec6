// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kWarps = 8;
constexpr int kMaxPath = STEPS;

// First the way, then the records along it.
__global__ void __launch_bounds__(32 * kWarps)
    walk(const int* __restrict__ record, const int* __restrict__ start, int* __restrict__ total) {
  extern __shared__ int paths[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int walker = blockIdx.x * kWarps + warp;
  int* path = paths + warp * kMaxPath;
  if (lane == 0) {
    int p = start[walker] & (NODES - 1);
#pragma unroll 1
    for (int s = 0; s < STEPS; ++s) {
      path[s] = p;
      p = record[p * 32] & (NODES - 1);
    }
  }
  __syncwarp();
  int sum = 0;
#pragma unroll 4
  for (int s = 0; s < STEPS; ++s) sum += record[path[s] * 32 + lane];
  total[walker * 32 + lane] = sum;
}
KP_LAUNCH(walk, kp::dim(WALKERS / kWarps), kp::dim(32 * kWarps), 4 * kWarps* kMaxPath, arg::record,
          arg::start, arg::total)
