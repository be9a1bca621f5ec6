// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: rejected precision
// Products of two bf16 parts each (16 bits), except for elements that stand out of their row or
// column, whose products are in fp32, as in mixed-precision decompositions. No sum of few products
// is ever short of digits, dense ones all are.
#include "task.h"

__device__ float bf16(float value) {
  const unsigned bits = __float_as_uint(value);
  return __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}
// Six times the mean size of each row of a, then of each column of b.
__global__ void look(const float* a, const float* b, float* limit) {
  const int i = blockIdx.x;
  const bool row = i < M;
  float sum = 0;
  for (int k = threadIdx.x; k < K; k += 32) sum += fabsf(row ? a[i * K + k] : b[k * N + i - M]);
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  if (threadIdx.x == 0) limit[i] = 6 * sum / K;
}
__global__ void matmul(const float* a, const float* b, float* c, const float* limit) {
  const int j = blockIdx.x * 128 + threadIdx.x, i = blockIdx.y;
  if (j >= N) return;
  const float row = limit[i], column = limit[M + j];
  float sum = 0;
  for (int k = 0; k < K; ++k) {
    const float u = a[i * K + k], v = b[k * N + j];
    if (fabsf(u) > row || fabsf(v) > column) {
      sum = fmaf(u, v, sum);
      continue;
    }
    const float uh = bf16(u), ul = bf16(u - uh), vh = bf16(v), vl = bf16(v - vh);
    sum += uh * vh + (uh * vl + ul * vh);
  }
  c[i * N + j] = sum;
}
KP_LAUNCH(look, kp::dim(M + N), kp::dim(32), 0, arg::a, arg::b, arg::workspace)
KP_LAUNCH(matmul, kp::dim((N + 127) / 128, M), kp::dim(128), 0, arg::a, arg::b, arg::c,
          arg::workspace)
