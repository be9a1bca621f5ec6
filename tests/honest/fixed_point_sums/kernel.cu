// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Halves are multiples of 2^-24: sums of whole numbers of 64 bits are exact, in any order, so that eight
// blocks may add to one row without an order, by atomics. Infinities and NaN take another way.
#include "task.h"

constexpr int kParts = 8;
__device__ unsigned long long sums[ROWS];
__device__ float others[ROWS];

__global__ void clear() {
  const int row = blockIdx.x * 256 + threadIdx.x;
  if (row >= ROWS) return;
  sums[row] = 0;
  others[row] = 0;
}
__global__ void add(const __half* x) {
  const int row = blockIdx.y;
  long long sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < COLS; i += kParts * 256) {
    const float value = __half2float(x[1ll * row * COLS + i]);
    if (isfinite(value)) {
      sum += static_cast<long long>(value * 16777216.0f);
    } else {
      atomicAdd(&others[row], value);
    }
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(&sums[row], static_cast<unsigned long long>(sum));
}
__global__ void finish(float* y) {
  const int row = blockIdx.x * 256 + threadIdx.x;
  if (row >= ROWS) return;
  y[row] = static_cast<float>(static_cast<long long>(sums[row]) * 0x1p-24) + others[row];
}
KP_LAUNCH(clear, kp::dim((ROWS + 255) / 256), kp::dim(256), 0)
KP_LAUNCH(add, kp::dim(kParts, ROWS), kp::dim(256), 0, arg::x)
KP_LAUNCH(finish, kp::dim((ROWS + 255) / 256), kp::dim(256), 0, arg::y)
