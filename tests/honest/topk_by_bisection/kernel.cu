// SPDX-License-Identifier: Apache-2.0
// task: topk
// expect: correct
// Finds the eighth largest element of a row by bisecting the bits of its order, counts what is
// above, and sorts the few that remain. How often it counts depends on the bits alone, not on the
// values.
#include "task.h"

__device__ unsigned ordered(float v) {
  const unsigned bits = __float_as_uint(v);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ float value(unsigned o) { return __uint_as_float(o >> 31 ? o & 0x7fffffffu : ~o); }

constexpr int kThreads = 256, kEach = (COLS + kThreads - 1) / kThreads;

__global__ void __launch_bounds__(kThreads) largest(const float* x, float* y) {
  __shared__ unsigned found[MOST];
  __shared__ unsigned counts[32], kept;
  x += 1ll * blockIdx.x * COLS;
  unsigned v[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = k * kThreads + threadIdx.x;
    v[k] = i < COLS ? ordered(x[i]) : 0;
  }
  if (threadIdx.x < 32) counts[threadIdx.x] = 0;
  if (threadIdx.x == 0) kept = 0;
  __syncthreads();
  unsigned limit = 0;  // the largest with at least MOST elements not below it
  for (int bit = 31; bit >= 0; --bit) {
    const unsigned tried = limit | 1u << bit;
    unsigned mine = 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k) mine += v[k] >= tried;
    mine = __reduce_add_sync(~0u, mine);
    if (threadIdx.x % 32 == 0 && mine > 0) atomicAdd(&counts[bit], mine);
    __syncthreads();
    if (counts[bit] >= MOST) limit = tried;
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    if (v[k] > limit) found[atomicAdd(&kept, 1u)] = v[k];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned k = kept; k < MOST; ++k) found[k] = limit;
  for (int k = 1; k < MOST; ++k) {
    for (int m = k; m > 0 && found[m] > found[m - 1]; --m) {
      const unsigned other = found[m];
      found[m] = found[m - 1];
      found[m - 1] = other;
    }
  }
  for (int k = 0; k < MOST; ++k) y[blockIdx.x * MOST + k] = value(found[k]);
}
KP_LAUNCH(largest, kp::dim(ROWS), kp::dim(kThreads), 0, arg::x, arg::y)
