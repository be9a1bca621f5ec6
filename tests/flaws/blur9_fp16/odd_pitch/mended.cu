// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// Rows begin where 16 bytes are aligned.
constexpr int kPitch = W;
constexpr bool kWide = kPitch % 8 == 0;
static_assert(W % 512 == 0 && H % 4 == 0);

// Eight values, at once where they are aligned.
template <bool kAligned>
__device__ inline void load8(float* v, const __half* from) {
  if constexpr (kAligned) {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    const __half2* h = reinterpret_cast<const __half2*>(&raw);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 f = __half22float2(h[k]);
      v[2 * k] = f.x, v[2 * k + 1] = f.y;
    }
  } else {
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = __half2float(from[k]);
  }
}

template <bool kAligned>
__device__ inline void store8(__half* to, const float* v) {
  if constexpr (kAligned) {
    uint4 raw;
    __half2* h = reinterpret_cast<__half2*>(&raw);
#pragma unroll
    for (int k = 0; k < 4; ++k) h[k] = __floats2half2_rn(v[2 * k], v[2 * k + 1]);
    *reinterpret_cast<uint4*>(to) = raw;
  } else {
#pragma unroll
    for (int k = 0; k < 8; ++k) to[k] = __float2half(v[k]);
  }
}

__device__ inline float tap(int k) {
  constexpr float kWeights[9] = {1, 8, 28, 56, 70, 56, 28, 8, 1};
  return kWeights[k] / 256;
}

__global__ void __launch_bounds__(64) along_rows(const __half* __restrict__ x, __half* between) {
  const int c = (blockIdx.x * 64 + threadIdx.x) * 8, r = blockIdx.y;
  float v[16], sum[8] = {};
  load8<true>(v, x + r * (W + 8) + c);
  load8<true>(v + 8, x + r * (W + 8) + c + 8);
#pragma unroll
  for (int k = 0; k < 9; ++k) {
#pragma unroll
    for (int j = 0; j < 8; ++j) sum[j] += tap(k) * v[j + k];
  }
  store8<kWide>(between + r * kPitch + c, sum);
}

// Four rows of results per thread.
__global__ void __launch_bounds__(64) along_columns(const __half* __restrict__ between, __half* y) {
  const int c = (blockIdx.x * 64 + threadIdx.x) * 8, r = blockIdx.y * 4;
  float sum[4][8] = {};
#pragma unroll
  for (int k = 0; k < 12; ++k) {
    float v[8];
    load8<kWide>(v, between + (r + k) * kPitch + c);
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      if (k - h < 0 || k - h > 8) continue;
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[h][j] += tap(k - h) * v[j];
    }
  }
#pragma unroll
  for (int h = 0; h < 4; ++h) store8<true>(y + (r + h) * W + c, sum[h]);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  __half* between = static_cast<__half*>(args.workspace);
  along_rows<<<dim3(W / 512, H + 8), 64, 0, stream>>>(args.x, between);
  along_columns<<<dim3(W / 512, H / 4), 64, 0, stream>>>(between, args.y);
}
