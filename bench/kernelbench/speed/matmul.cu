// SPDX-License-Identifier: Apache-2.0
// fp32 matrix product of square matrices in tiles of 64 x 64, 4 x 4 elements a thread, for
// KernelBench's 1_Square_matrix_multiplication_.
#include "task.h"

constexpr int kTile = 64;
constexpr int kDepth = 16;

__global__ void __launch_bounds__(256) matmul(const float* a, const float* b, float* c) {
  __shared__ float left[kDepth][kTile + 4];
  __shared__ float right[kDepth][kTile];
  const int column = threadIdx.x % 16 * 4, row = threadIdx.x / 16 * 4;
  const long long top = blockIdx.y * kTile, side = blockIdx.x * kTile;
  float sum[4][4] = {};
  for (int k = 0; k < N; k += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += 256) {
      left[i % kDepth][i / kDepth] = a[(top + i / kDepth) * N + k + i % kDepth];
      right[i / kTile][i % kTile] = b[1ll * (k + i / kTile) * N + side + i % kTile];
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sum[i][j] += left[d][row + i] * right[d][column + j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) c[(top + row + i) * N + side + column + j] = sum[i][j];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  static_assert(N % kTile == 0, "whole tiles");
  matmul<<<dim3(N / kTile, N / kTile), 256, 0, stream>>>(args.A, args.B, args.out);
}
