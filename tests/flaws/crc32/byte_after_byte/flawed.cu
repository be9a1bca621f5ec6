// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 128;

__device__ inline unsigned shifted(unsigned v) {
#pragma unroll
  for (int b = 0; b < 8; ++b) v = (v >> 1) ^ ((v & 1) != 0 ? 0xedb88320u : 0u);
  return v;
}

__global__ void __launch_bounds__(kThreads)
    crc32(const int* __restrict__ word, int* __restrict__ y) {
  __shared__ unsigned table[256];
  for (int b = threadIdx.x; b < 256; b += kThreads) table[b] = shifted(b);
  __syncthreads();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  unsigned crc = 0xffffffffu;
  unsigned next[16];
#pragma unroll
  for (int h = 0; h < 16; ++h) next[h] = word[h * N + i];
#pragma unroll 1
  for (int k = 0; k < WORDS; k += 16) {
    unsigned w[16];
#pragma unroll
    for (int h = 0; h < 16; ++h) w[h] = next[h];
    if (k + 16 < WORDS) {  // the next words come while these are used
#pragma unroll
      for (int h = 0; h < 16; ++h) next[h] = word[(k + 16 + h) * N + i];
    }
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 16; ++h) {
      crc ^= w[h];
#pragma unroll
      for (int b = 0; b < 4; ++b) crc = (crc >> 8) ^ table[crc & 255];
    }
  }
  y[i] = ~crc;
}
static_assert(N % kThreads == 0 && WORDS % 16 == 0);
KP_LAUNCH(crc32, kp::dim(N / kThreads), kp::dim(kThreads), 0, arg::word, arg::y)
