// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A block's own counters, then one addition for each of them that is not zero.
__global__ void clear(int* y) { y[blockIdx.x * 256 + threadIdx.x] = 0; }

__global__ void __launch_bounds__(1024) count(const int4* __restrict__ x, int* __restrict__ y) {
  __shared__ int bins[BINS];
  for (int k = threadIdx.x; k < BINS; k += 1024) bins[k] = 0;
  __syncthreads();
  const int step = gridDim.x * 1024;
#pragma unroll 4
  for (int i = blockIdx.x * 1024 + threadIdx.x; i < N / 4; i += step) {
    const int4 v = x[i];
    atomicAdd(bins + v.x, 1);
    atomicAdd(bins + v.y, 1);
    atomicAdd(bins + v.z, 1);
    atomicAdd(bins + v.w, 1);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < BINS; k += 1024) {
    if (bins[k] != 0) atomicAdd(y + k, bins[k]);
  }
}
KP_LAUNCH(clear, kp::dim(BINS / 256), kp::dim(256), 0, arg::y)
KP_LAUNCH(count, kp::dim(132 * 2), kp::dim(1024), 0, arg::x, arg::y)
