// SPDX-License-Identifier: Apache-2.0
// task: collatz
// expect: correct
// Loops whose length depends on the data, with work handed out by a counter in shared memory.
#include "task.h"

__global__ void collatz(const int* in, int* out) {
  __shared__ int next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  for (;;) {
    const int i = blockIdx.x + gridDim.x * atomicAdd(&next, 1);
    if (i >= N) return;
    long long n = in[i];
    int steps = 0;
    while (n != 1) {
      const int zeros = __ffsll(n) - 1;
      n >>= zeros;
      steps += zeros;
      if (n == 1) break;
      n = 3 * n + 1;
      ++steps;
    }
    out[i] = steps;
  }
}
KP_LAUNCH(collatz, kp::dim(64), kp::dim(32), 0, arg::n, arg::steps)
