// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// 128 x 128 results per block, 8 x 8 per thread, operands staged in shared memory.
constexpr int kTile = 128, kDepth = 16;
static_assert(M % kTile == 0 && N % kTile == 0 && K % kDepth == 0);

__global__ void __launch_bounds__(256)
    matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float as[kDepth][kTile + 4];
  __shared__ float bs[kDepth][kTile];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  float sum[8][8] = {};
  float4 ra[2], rb[2];
  const auto fetch = [&](int k0) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int e = t + 256 * h;
      ra[h] = *reinterpret_cast<const float4*>(a + (row0 + e / 4) * K + k0 + e % 4 * 4);
      rb[h] = *reinterpret_cast<const float4*>(b + (k0 + e / 32) * N + column0 + e % 32 * 4);
    }
  };
  fetch(0);
  for (int k0 = 0; k0 < K; k0 += kDepth) {
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int e = t + 256 * h;
      as[e % 4 * 4 + 0][e / 4] = ra[h].x;
      as[e % 4 * 4 + 1][e / 4] = ra[h].y;
      as[e % 4 * 4 + 2][e / 4] = ra[h].z;
      as[e % 4 * 4 + 3][e / 4] = ra[h].w;
      *reinterpret_cast<float4*>(&bs[e / 32][e % 32 * 4]) = rb[h];
    }
    __syncthreads();
    if (k0 + kDepth < K) fetch(k0 + kDepth);
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float x[8], y[8];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float4 u = *reinterpret_cast<const float4*>(&as[k][h * 64 + ty * 4]);
        const float4 v = *reinterpret_cast<const float4*>(&bs[k][h * 64 + tx * 4]);
        x[4 * h] = u.x, x[4 * h + 1] = u.y, x[4 * h + 2] = u.z, x[4 * h + 3] = u.w;
        y[4 * h] = v.x, y[4 * h + 1] = v.y, y[4 * h + 2] = v.z, y[4 * h + 3] = v.w;
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += x[i] * y[j];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = row0 + i / 4 * 64 + ty * 4 + i % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      *reinterpret_cast<float4*>(c + row * N + column0 + h * 64 + tx * 4) = make_float4(
          sum[i][4 * h], sum[i][4 * h + 1], sum[i][4 * h + 2], sum[i][4 * h + 3]);
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  matmul<<<dim3(N / kTile, M / kTile), 256, 0, stream>>>(args.a, args.b, args.c);
}
