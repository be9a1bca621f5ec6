// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// Eight lanes for each query.
constexpr int kQueries = 64, kParts = 8, kThreads = kQueries * kParts, kKeys = 32;
constexpr int kMine = 192 / kParts / 4;  // vectors of four channels
static_assert(S % kQueries == 0);

__global__ void __launch_bounds__(kThreads)
    attention(const float4* __restrict__ q, const float4* __restrict__ k,
              const float4* __restrict__ v, float4* __restrict__ y) {
  __shared__ float4 ks[kKeys][48], vs[kKeys][48];
  const int part = threadIdx.x % kParts;
  const int row = blockIdx.y * S + blockIdx.x * kQueries + threadIdx.x / kParts;
  float4 mine[kMine], sum[kMine];
#pragma unroll
  for (int c = 0; c < kMine; ++c) {
    const float4 f = q[row * 48 + c * kParts + part];
    constexpr float kScale = 0.07216878364870323f;
    mine[c] = make_float4(f.x * kScale, f.y * kScale, f.z * kScale, f.w * kScale);
    sum[c] = make_float4(0, 0, 0, 0);
  }
  float most = -1e30f, total = 0;
#pragma unroll 1
  for (int tile = 0; tile < S; tile += kKeys) {
    const int first = (blockIdx.y * S + tile) * 48;
    __syncthreads();
#pragma unroll 4
    for (int e = threadIdx.x; e < kKeys * 48; e += kThreads) {
      ks[e / 48][e % 48] = k[first + e];
      vs[e / 48][e % 48] = v[first + e];
    }
    __syncthreads();
#pragma unroll 1
    for (int j = 0; j < kKeys; ++j) {
      float dot[4] = {};
#pragma unroll
      for (int c = 0; c < kMine; ++c) {
        const float4 f = ks[j][c * kParts + part];
        dot[0] += mine[c].x * f.x;
        dot[1] += mine[c].y * f.y;
        dot[2] += mine[c].z * f.z;
        dot[3] += mine[c].w * f.w;
      }
      float score = (dot[0] + dot[1]) + (dot[2] + dot[3]);
#pragma unroll
      for (int m = 1; m < kParts; m *= 2) score += __shfl_xor_sync(0xffffffffu, score, m);
      if (score > most) {
        const float scale = __expf(most - score);
        most = score;
        total *= scale;
#pragma unroll
        for (int c = 0; c < kMine; ++c) {
          sum[c].x *= scale, sum[c].y *= scale, sum[c].z *= scale, sum[c].w *= scale;
        }
      }
      const float p = __expf(score - most);
      total += p;
#pragma unroll
      for (int c = 0; c < kMine; ++c) {
        const float4 f = vs[j][c * kParts + part];
        sum[c].x += p * f.x, sum[c].y += p * f.y, sum[c].z += p * f.z, sum[c].w += p * f.w;
      }
    }
  }
  const float scale = 1.0f / total;
#pragma unroll
  for (int c = 0; c < kMine; ++c) {
    y[row * 48 + c * kParts + part] =
        make_float4(sum[c].x * scale, sum[c].y * scale, sum[c].z * scale, sum[c].w * scale);
  }
}
KP_LAUNCH(attention, kp::dim(S / kQueries, HEADS), kp::dim(kThreads), 0, arg::q, arg::k, arg::v,
          arg::y)
