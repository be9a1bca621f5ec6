// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 128;
constexpr int kStack = 96;

// Each thread has its stack in shared memory; a search goes both ways where a key is near.
__global__ void __launch_bounds__(kThreads)
    search(const int* __restrict__ key, const int* __restrict__ query, int* __restrict__ y) {
  extern __shared__ int stacks[];
  int* stack = stacks + threadIdx.x;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int q = query[i];
  int node = 0, count = 0, sum = 0;
  while (true) {
    const int k = key[node];
    sum += k;
    if (2 * node + 2 < NODES) {
      const bool left = q < k + 8000, right = q >= k - 8000;
      if (left && right) stack[kThreads * count++] = 2 * node + 1;
      node = 2 * node + (right ? 2 : 1);
    } else {
      if (count == 0) break;
      node = stack[kThreads * --count];
    }
  }
  y[i] = sum;
}
static_assert(N % kThreads == 0);
KP_LAUNCH(search, kp::dim(N / kThreads), kp::dim(kThreads), 4 * kThreads * kStack, arg::key,
          arg::query, arg::y)
