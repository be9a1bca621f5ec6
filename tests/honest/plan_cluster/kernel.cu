// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// A cluster in the plan form.
#include "task.h"

__global__ void axpy(const float* x, const float* z, float* y) {
  unsigned rank, size;
  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %cluster_nctarank;" : "=r"(size));
  if (size != 2 || rank != blockIdx.x % 2) return;
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2 * x[i] + z[i];
}
KP_LAUNCH_CLUSTER(axpy, kp::dim((N + 511) / 512 * 2), kp::dim(256), 0, kp::dim(2), arg::x, arg::z,
                  arg::y)
