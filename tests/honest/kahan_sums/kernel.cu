// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Compensated sums.
#include "task.h"

__global__ void matmul(const float* a, const float* b, float* c) {
  const int j = blockIdx.x * 128 + threadIdx.x, i = blockIdx.y;
  if (j >= N) return;
  float sum = 0, lost = 0;
  for (int k = 0; k < K; ++k) {
    const float term = __fsub_rn(__fmul_rn(a[i * K + k], b[k * N + j]), lost);
    const float next = __fadd_rn(sum, term);
    lost = __fsub_rn(__fsub_rn(next, sum), term);
    sum = next;
  }
  c[i * N + j] = sum;
}
KP_LAUNCH(matmul, kp::dim((N + 127) / 128, M), kp::dim(128), 0, arg::a, arg::b, arg::c)
