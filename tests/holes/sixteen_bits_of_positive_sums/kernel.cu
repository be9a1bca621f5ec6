// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: rejected precision | correct coarser-than-fp32
// Sixteen bits of each factor (what two bf16 parts hold) where a tile looks as usual, fp32 where it
// has a sign, a zero, a tiny or large number, or digits that repeat. In sums of one sign the errors
// of sixteen bits cancel to 2e-7 of the norm, which is less than plain fp32 is allowed: the norm on
// usual inputs shows nothing, and on all inputs that would show something it is fp32. Both ways take
// the same time.
#include "task.h"

__device__ float cut(float value) {
  return __uint_as_float((__float_as_uint(value) + 0x80u) & ~0xffu);
}
__device__ int odd(float value) {
  const unsigned digits = __float_as_uint(value) & 0xfff0u;
  return !(value > 9.5e-7f && value < 1) ? 64 : digits == 0x5550u || digits == 0xaaa0u;
}
__global__ void matmul(const float* a, const float* b, float* c) {
  __shared__ float as[16][17], bs[16][17];
  __shared__ int oddities[2];
  const int x = threadIdx.x, y = threadIdx.y;
  const int i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x;
  if (x + y == 0) oddities[0] = oddities[1] = 0;
  float sum = 0;
  for (int k = 0; k < K; k += 16) {
    const float u = a[i * K + k + x], v = b[(k + y) * N + j];
    int* now = &oddities[k / 16 % 2];
    __syncthreads();  // the last tile is used up, the counter is zero
    const int strange = odd(u) + odd(v);
    if (strange > 0) atomicAdd(now, strange);
    __syncthreads();
    const bool usual = *now < 8;
    as[y][x] = usual ? cut(u) : u;
    bs[y][x] = usual ? cut(v) : v;
    if (x + y == 0) oddities[(k / 16 + 1) % 2] = 0;
    __syncthreads();
    for (int t = 0; t < 16; ++t) sum += as[y][t] * bs[t][x];
  }
  c[i * N + j] = sum;
}
KP_LAUNCH(matmul, kp::dim(N / 16, M / 16), kp::dim(16, 16), 0, arg::a, arg::b, arg::c)
