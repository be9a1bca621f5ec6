// SPDX-License-Identifier: Apache-2.0
#include <cuda_pipeline.h>

#include "task.h"

// Tiles of 64 keys and values; each of eight warps takes eight keys of a tile, four lanes a key,
// and then four channels of the result a lane.
constexpr int kThreads = 256, kKeys = 64, kPitchK = 160, kPitchV = 136, kStages = 3;
constexpr int kStage = kKeys * (kPitchK + kPitchV);
static_assert(S % kKeys == 0);

struct State {
  float most, total, sum[4];
};

__device__ inline void unpack(float* v, uint4 raw) {
  const __half2* h = reinterpret_cast<const __half2*>(&raw);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float2 f = __half22float2(h[k]);
    v[2 * k] = f.x, v[2 * k + 1] = f.y;
  }
}

__device__ inline void attend(State& state, const float (&q)[32], const __half* ks,
                              const __half* vs) {
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 8;
  float dot[4] = {};
#pragma unroll
  for (int h = 0; h < 4; ++h) {
    float v[8];
    unpack(v, *reinterpret_cast<const uint4*>(ks + (first + lane / 4) * kPitchK + 32 * h +
                                              lane % 4 * 8));
#pragma unroll
    for (int j = 0; j < 8; ++j) dot[h] += q[8 * h + j] * v[j];
  }
  float score = (dot[0] + dot[1]) + (dot[2] + dot[3]);
  score += __shfl_xor_sync(0xffffffffu, score, 1);
  score += __shfl_xor_sync(0xffffffffu, score, 2);
  float most = score;
#pragma unroll
  for (int m = 4; m < 32; m *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, m));
  most = fmaxf(most, state.most);
  const float p = __expf(score - most), scale = __expf(state.most - most);
  state.most = most;
  state.total = state.total * scale + p;  // of the lane's own key
#pragma unroll
  for (int c = 0; c < 4; ++c) state.sum[c] *= scale;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float w = __shfl_sync(0xffffffffu, p, 4 * j);
    const uint2 raw = *reinterpret_cast<const uint2*>(vs + (first + j) * kPitchV + 4 * lane);
    const __half2* h = reinterpret_cast<const __half2*>(&raw);
    const float2 a = __half22float2(h[0]), b = __half22float2(h[1]);
    state.sum[0] += w * a.x;
    state.sum[1] += w * a.y;
    state.sum[2] += w * b.x;
    state.sum[3] += w * b.y;
  }
}

// The eight warps' results together.
__device__ inline void finish(State& state, __half* y) {
  __shared__ float most[8], total[8], sum[8][128];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int m = 4; m < 32; m *= 2) state.total += __shfl_xor_sync(0xffffffffu, state.total, m);
  if (lane == 0) most[warp] = state.most, total[warp] = state.total;
#pragma unroll
  for (int c = 0; c < 4; ++c) sum[warp][4 * lane + c] = state.sum[c];
  __syncthreads();
  if (threadIdx.x >= 128) return;
  float m = most[0], all = 0, s = 0;
#pragma unroll
  for (int w = 1; w < 8; ++w) m = fmaxf(m, most[w]);
#pragma unroll
  for (int w = 0; w < 8; ++w) {
    const float scale = __expf(most[w] - m);
    all += scale * total[w];
    s += scale * sum[w][threadIdx.x];
  }
  y[threadIdx.x] = __float2half(__fdividef(s, all));
}

__global__ void __launch_bounds__(kThreads, 1)
    decode(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
           __half* __restrict__ y) {
  extern __shared__ __align__(128) unsigned char memory[];
  __half* stages = reinterpret_cast<__half*>(memory);
  float mine[32];
#pragma unroll
  for (int h = 0; h < 4; ++h) {
    unpack(mine + 8 * h,
           *reinterpret_cast<const uint4*>(q + blockIdx.x * 128 + 32 * h + threadIdx.x % 4 * 8));
  }
#pragma unroll
  for (int j = 0; j < 32; ++j) mine[j] *= 0.08838834764831845f;
  k += 128ll * S * blockIdx.x;
  v += 128ll * S * blockIdx.x;
  State state = {-1e30f, 0, {0, 0, 0, 0}};
  const auto fetch = [&](int tile) {
    __half* to = stages + tile % kStages * kStage;
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      const int e = threadIdx.x + kThreads * h, r = e / 16, c = e % 16 * 8;
      __pipeline_memcpy_async(to + r * kPitchK + c, k + (tile * kKeys + r) * 128 + c, 16);
      __pipeline_memcpy_async(to + kKeys * kPitchK + r * kPitchV + c,
                              v + (tile * kKeys + r) * 128 + c, 16);
    }
  };
#pragma unroll
  for (int t = 0; t < kStages - 1; ++t) {
    if (t < S / kKeys) fetch(t);
    __pipeline_commit();
  }
#pragma unroll 1
  for (int t = 0; t < S / kKeys; ++t) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    if (t + kStages - 1 < S / kKeys) fetch(t + kStages - 1);
    __pipeline_commit();
    const __half* ks = stages + t % kStages * kStage;
    attend(state, mine, ks, ks + kKeys * kPitchK);
  }
  finish(state, y + blockIdx.x * 128);
}

constexpr int kBytes = kStages * kStage * 2;

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(decode, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  decode<<<HEADS, kThreads, kBytes, stream>>>(args.q, args.k, args.v, args.y);
}
