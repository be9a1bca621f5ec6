// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Sums of halves, down to single products.
#include "task.h"

__global__ void matmul(const float* a, const float* b, float* c) {
  const int j = blockIdx.x * 128 + threadIdx.x, i = blockIdx.y;
  if (j >= N) return;
  // Of 2^n products each, as the bits of a counter carry.
  float parts[32];
  for (int k = 0; k < K; ++k) {
    float sum = a[i * K + k] * b[k * N + j];
    int level = 0;
    for (; (k >> level & 1) != 0; ++level) sum += parts[level];
    parts[level] = sum;
  }
  float sum = 0;
  for (int level = 0; level < 31; ++level) {
    if ((K >> level & 1) != 0) sum += parts[level];
  }
  c[i * N + j] = sum;
}
KP_LAUNCH(matmul, kp::dim((N + 127) / 128, M), kp::dim(128), 0, arg::a, arg::b, arg::c)
