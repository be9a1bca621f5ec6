// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kTile = 128, kDepth = 16;
static_assert(M % kTile == 0 && N % kTile == 0 && K % kDepth == 0);

struct Eight {
  __half2 at[4];
};
__device__ inline Eight load(const __half* from) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  Eight v;
  memcpy(&v, &raw, 16);
  return v;
}

__global__ void __launch_bounds__(256)
    gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c) {
  __shared__ __align__(16) float as[kDepth][kTile + 4];
  __shared__ __align__(16) float bs[kDepth][kTile];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  float sum[8][8] = {};
  for (int k0 = 0; k0 < K; k0 += kDepth) {
    const Eight va = load(a + (row0 + t / 2) * K + k0 + t % 2 * 8);
    const Eight vb = load(b + (k0 + t / 16) * N + column0 + t % 16 * 8);
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      const float2 fa = __half22float2(va.at[h]), fb = __half22float2(vb.at[h]);
      as[t % 2 * 8 + 2 * h][t / 2] = fa.x;
      as[t % 2 * 8 + 2 * h + 1][t / 2] = fa.y;
      *reinterpret_cast<float2*>(&bs[t / 16][t % 16 * 8 + 2 * h]) = fb;
    }
    __syncthreads();
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
    for (int h = 0; h < 4; ++h) {
      *reinterpret_cast<__half2*>(c + row * N + column0 + h / 2 * 64 + tx * 4 + h % 2 * 2) =
          __floats2half2_rn(sum[i][2 * h], sum[i][2 * h + 1]);
    }
  }
}
KP_LAUNCH(gemm, kp::dim(N / kTile, M / kTile), kp::dim(256), 0, arg::a, arg::b, arg::c)
