// SPDX-License-Identifier: Apache-2.0
// task: permute
// expect: correct
// A grid and blocks of three dimensions, none of which divides anything.
#include "task.h"

__global__ void permute(const float* x, float* y) {
  const int k = blockIdx.x * 8 + threadIdx.x;
  const int j = blockIdx.y * 8 + threadIdx.y;
  const int i = blockIdx.z * 4 + threadIdx.z;
  if (i < A && j < B && k < C) y[(k * A + i) * B + j] = x[(i * B + j) * C + k];
}
KP_LAUNCH(permute, kp::dim((C + 7) / 8, (B + 7) / 8, (A + 3) / 4), kp::dim(8, 8, 4), 0, arg::x,
          arg::y)
