// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__device__ void add(float* to, float v) { atomicAdd(to, v); }

__global__ void segment_sum(const int* __restrict__ segment, const float* __restrict__ x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) add(y + segment[i], x[i]);
}
KP_MEMSET(arg::y, 0, SEGMENTS * 4)
KP_LAUNCH(segment_sum, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::segment, arg::x, arg::y)
