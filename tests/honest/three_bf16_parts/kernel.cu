// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// fp32 from three bf16 parts of each factor, six products: all 24 bits.
#include "task.h"

__device__ float bf16(float value) {
  const unsigned bits = __float_as_uint(value);
  return __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}
__device__ float product(float a, float b) {
  const float ah = bf16(a), am = bf16(a - ah), al = bf16(a - ah - am);
  const float bh = bf16(b), bm = bf16(b - bh), bl = bf16(b - bh - bm);
  return ah * bh + (ah * bm + am * bh + (am * bm + (ah * bl + al * bh)));
}
__global__ void matmul(const float* a, const float* b, float* c) {
  const int j = blockIdx.x * 128 + threadIdx.x, i = blockIdx.y;
  if (j >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += product(a[i * K + k], b[k * N + j]);
  c[i * N + j] = sum;
}
KP_LAUNCH(matmul, kp::dim((N + 127) / 128, M), kp::dim(128), 0, arg::a, arg::b, arg::c)
