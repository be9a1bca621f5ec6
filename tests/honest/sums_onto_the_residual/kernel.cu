// SPDX-License-Identifier: Apache-2.0
// task: branch
// expect: correct
// Adds up onto a large addend, which costs digits of the products.
#include "task.h"

__global__ void matmul(const float* a, const float* b, const float* z, float* c) {
  const int j = blockIdx.x * 128 + threadIdx.x, i = blockIdx.y;
  if (j >= N) return;
  float sum = z[i * N + j];
  for (int k = 0; k < K; ++k) sum += a[i * K + k] * b[k * N + j];
  c[i * N + j] = sum;
}
KP_LAUNCH(matmul, kp::dim((N + 127) / 128, M), kp::dim(128), 0, arg::a, arg::b, arg::z, arg::c)
