// SPDX-License-Identifier: Apache-2.0
// task: histogram
// expect: correct
// Integer and bool outputs; counts go through shared memory.
#include "task.h"

__global__ void histogram(const int* keys, unsigned long long* counts, bool* odd) {
  __shared__ unsigned all[BINS];
  for (int b = threadIdx.x; b < BINS; b += 256) all[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256) {
    const int key = keys[i];
    atomicAdd(all + key, 1u);
    odd[i] = (key & 1) != 0;
  }
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += 256) {
    atomicAdd(counts + b, static_cast<unsigned long long>(all[b]));
  }
}
KP_MEMSET(arg::counts, 0, BINS * 8)
KP_LAUNCH(histogram, kp::dim(264), kp::dim(256), 0, arg::keys, arg::counts, arg::odd)
