// SPDX-License-Identifier: Apache-2.0
// Flaw: a tiled product on bf16 inputs that multiplies with scalar fused multiply-adds.
#include "task.h"
constexpr int kTile = 32;
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  __shared__ float ta[kTile][kTile + 1], tb[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < K; k += kTile) {
    ta[threadIdx.y][threadIdx.x] = __bfloat162float(a[row * K + k + threadIdx.x]);
    tb[threadIdx.y][threadIdx.x] = __bfloat162float(b[(k + threadIdx.y) * N + column]);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
    __syncthreads();
  }
  c[row * N + column] = __float2bfloat16(sum);
}
KP_LAUNCH(gemm, kp::dim(N / kTile, M / kTile), kp::dim(kTile, kTile), 0, arg::a, arg::b, arg::c)
