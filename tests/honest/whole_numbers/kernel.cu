// SPDX-License-Identifier: Apache-2.0
// task: counts
// expect: correct
// Plain sums of whole numbers.
#include "task.h"

__global__ void matmul(const float* a, const float* b, float* c) {
  const int j = blockIdx.x * 128 + threadIdx.x, i = blockIdx.y;
  if (j >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += a[i * K + k] * b[k * N + j];
  c[i * N + j] = sum;
}
KP_LAUNCH(matmul, kp::dim((N + 127) / 128, M), kp::dim(128), 0, arg::a, arg::b, arg::c)
