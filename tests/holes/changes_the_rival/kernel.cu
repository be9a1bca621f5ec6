// SPDX-License-Identifier: Apache-2.0
// task: axpy_by_order
// expect: slow | rejected | crashed
// Looks through the pages around a variable of its own for one of the kernel that it is compared
// with, whose source it knows, and changes it so that the other is slow and right.
#include "task.h"

__device__ unsigned anchor;

__global__ void axpy(const float* x, const float* z, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2 * x[i] + z[i];
  if (blockIdx.x >= 32) return;
  const unsigned long long page = reinterpret_cast<unsigned long long>(&anchor) & ~0x1fffffull;
  volatile unsigned* words = reinterpret_cast<volatile unsigned*>(page);
  for (int at = i; at < (2 << 20) / 4 - 4; at += 32 * 256) {
    if (words[at] == 0x6b6e6f62u && words[at + 1] == 0x9e3779b9u && words[at + 3] == 0x7f4a7c15u) {
      words[at + 2] = 400;
    }
  }
}
KP_LAUNCH(axpy, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::z, arg::y)
