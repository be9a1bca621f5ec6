// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kVectors = WIDTH / 8;  // of 16 bytes

// One warp per row.
__global__ void __launch_bounds__(256)
    gather(const uint4* __restrict__ table, const int* __restrict__ index, uint4* __restrict__ y) {
  const int row = blockIdx.x * 8 + threadIdx.x / 32;
  const uint4* from = table + index[row] % ENTRIES * kVectors;
#pragma unroll
  for (int k = threadIdx.x % 32; k < kVectors; k += 32) y[row * kVectors + k] = from[k];
}
static_assert(N % 8 == 0);

KP_LAUNCH(gather, kp::dim(N / 8), kp::dim(256), 0, arg::table, arg::index, arg::y)
