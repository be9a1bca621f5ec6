// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__device__ void add(__half2* to, __half2 v) {
  unsigned* word = reinterpret_cast<unsigned*>(to);
  unsigned old = *word, expected;
  do {
    expected = old;
    __half2 sum;
    memcpy(&sum, &expected, 4);
    sum = __hadd2(sum, v);
    unsigned next;
    memcpy(&next, &sum, 4);
    old = atomicCAS(word, expected, next);
  } while (old != expected);
}

// A warp for each row.
__global__ void __launch_bounds__(256)
    scatter(const int* __restrict__ entry, const __half2* __restrict__ x, __half2* y) {
  const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  add(y + entry[row] % ENTRIES * 32 + lane, x[row * 32 + lane]);
}
static_assert(N % 8 == 0);
KP_MEMSET(arg::y, 0, 128ll * ENTRIES)
KP_LAUNCH(scatter, kp::dim(N / 8), kp::dim(256), 0, arg::entry, arg::x, arg::y)
