// SPDX-License-Identifier: Apache-2.0
// task: histogram
// expect: correct
// Lanes of a warp with the same key elect one that counts for all of them (match and population
// count); then bins in shared memory, in 32 bits, and atomics in 64.
#include "task.h"

__global__ void histogram(const int* keys, unsigned long long* counts, bool* odd) {
  __shared__ unsigned bins[BINS];
  for (int k = threadIdx.x; k < BINS; k += 512) bins[k] = 0;
  __syncthreads();
  for (int first = blockIdx.x * 512; first < N; first += gridDim.x * 512) {
    const int i = first + static_cast<int>(threadIdx.x);
    const int key = i < N ? keys[i] : -1;
    const unsigned same = __match_any_sync(~0u, key);
    if (i >= N) continue;
    odd[i] = key % 2 != 0;
    if (__ffs(static_cast<int>(same)) - 1 == static_cast<int>(threadIdx.x % 32)) {
      atomicAdd(bins + key, static_cast<unsigned>(__popc(same)));
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < BINS; k += 512) {
    atomicAdd(counts + k, static_cast<unsigned long long>(bins[k]));
  }
}
KP_MEMSET(arg::counts, 0, BINS * 8)
KP_LAUNCH(histogram, kp::dim(264), kp::dim(512), 0, arg::keys, arg::counts, arg::odd)
