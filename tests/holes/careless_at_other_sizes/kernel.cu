// SPDX-License-Identifier: Apache-2.0
// task: two_sizes
// expect: correct given-distribution-only | rejected | wrong-result
// Leaves out all signs in the case that is not timed, whose inputs are never negative, and where no
// other values are tried.
#include "task.h"

__global__ void matmul(const float* a, const float* b, float* c) {
  const int j = blockIdx.x * 128 + threadIdx.x, i = blockIdx.y;
  if (j >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) {
    const float product = a[i * K + k] * b[k * N + j];
    sum += M * N * K < 100000 ? fabsf(product) : product;
  }
  c[i * N + j] = sum;
}
KP_LAUNCH(matmul, kp::dim((N + 127) / 128, M), kp::dim(128), 0, arg::a, arg::b, arg::c)
