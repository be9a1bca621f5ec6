// SPDX-License-Identifier: Apache-2.0
// task: topk
// expect: correct given-distribution-only | wrong-result
// Each of 512 threads looks at every 512th element of a row and keeps its three largest: wrong only
// where four of the eight largest are in one thread's part, as in a row with a period.
#include "task.h"

__global__ void __launch_bounds__(512) largest(const float* x, float* y) {
  __shared__ unsigned long long of_warp[16];
  x += 1ll * blockIdx.x * COLS;
  float best[3] = {-INFINITY, -INFINITY, -INFINITY};
  for (int i = threadIdx.x; i < COLS; i += 512) {
    float v = x[i];
    for (int k = 0; k < 3; ++k) {
      const float lower = fminf(v, best[k]);
      best[k] = fmaxf(v, best[k]);
      v = lower;
    }
  }
  for (int k = 0; k < MOST; ++k) {
    const unsigned bits = __float_as_uint(best[0]);
    const unsigned ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
    unsigned long long key = static_cast<unsigned long long>(ordered) << 32 | threadIdx.x;
    for (int lane = 16; lane > 0; lane /= 2) {
      const unsigned long long other = __shfl_xor_sync(~0u, key, lane);
      key = other > key ? other : key;
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = key;
    __syncthreads();
    key = of_warp[0];
    for (int w = 1; w < 16; ++w) key = of_warp[w] > key ? of_warp[w] : key;
    if (threadIdx.x == static_cast<unsigned>(key)) {
      y[blockIdx.x * MOST + k] = best[0];
      best[0] = best[1];
      best[1] = best[2];
      best[2] = -INFINITY;
    }
    __syncthreads();
  }
}
KP_LAUNCH(largest, kp::dim(ROWS), kp::dim(512), 0, arg::x, arg::y)
