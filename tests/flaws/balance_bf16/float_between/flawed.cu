// SPDX-License-Identifier: Apache-2.0
#include "task.h"

using Between = float;  // the rows scaled, columns not yet
constexpr int kThreads = 256, kPacks = COLS / 8 / kThreads, kRows = 64;
static_assert(COLS % (8 * kThreads) == 0 && ROWS % kRows == 0);

struct Eight {
  float at[8];
};
__device__ inline Eight load(const __nv_bfloat16* from) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  __nv_bfloat162 pack[4];
  memcpy(pack, &raw, 16);
  Eight v;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float2 f = __bfloat1622float2(pack[k]);
    v.at[2 * k] = f.x, v.at[2 * k + 1] = f.y;
  }
  return v;
}
__device__ inline void store(__nv_bfloat16* to, const Eight& v) {
  __nv_bfloat162 pack[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) pack[k] = __floats2bfloat162_rn(v.at[2 * k], v.at[2 * k + 1]);
  uint4 raw;
  memcpy(&raw, pack, 16);
  *reinterpret_cast<uint4*>(to) = raw;
}
__device__ inline Eight load(const float* from) {
  const float4 a = reinterpret_cast<const float4*>(from)[0];
  const float4 b = reinterpret_cast<const float4*>(from)[1];
  return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}
__device__ inline void store(float* to, const Eight& v) {
  reinterpret_cast<float4*>(to)[0] = make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
  reinterpret_cast<float4*>(to)[1] = make_float4(v.at[4], v.at[5], v.at[6], v.at[7]);
}

__device__ inline float most_of(const Eight& v, float most) {
#pragma unroll
  for (int k = 0; k < 8; ++k) most = fmaxf(most, fabsf(v.at[k]));
  return most;
}

__global__ void __launch_bounds__(kThreads)
    scale_rows(const __nv_bfloat16* __restrict__ x, Between* __restrict__ between) {
  __shared__ float part[kThreads / 32];
  const long long first = 1ll * blockIdx.x * COLS;
  Eight v[kPacks];
  float most = 1e-30f;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    v[k] = load(x + first + (k * kThreads + threadIdx.x) * 8);
    most = most_of(v[k], most);
  }
#pragma unroll
  for (int m = 16; m > 0; m /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, m));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kThreads / 32; ++k) most = fmaxf(most, part[k]);
  const float scale = __fdividef(1.0f, most);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
#pragma unroll
    for (int j = 0; j < 8; ++j) v[k].at[j] *= scale;
    store(between + first + (k * kThreads + threadIdx.x) * 8, v[k]);
  }
}

// Magnitudes are compared as the integers that their bits are.
__global__ void __launch_bounds__(128)
    column_maxima(const Between* __restrict__ between, int* __restrict__ most) {
  const int c = (blockIdx.x * 128 + threadIdx.x) * 8;
  Eight m = {};
#pragma unroll 8
  for (int k = 0; k < kRows; ++k) {
    const Eight v = load(between + 1ll * (blockIdx.y * kRows + k) * COLS + c);
#pragma unroll
    for (int j = 0; j < 8; ++j) m.at[j] = fmaxf(m.at[j], fabsf(v.at[j]));
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) atomicMax(most + c + j, __float_as_int(m.at[j]));
}

__global__ void __launch_bounds__(128)
    scale_columns(const Between* __restrict__ between, const int* __restrict__ most,
                  __nv_bfloat16* __restrict__ y) {
  const int c = (blockIdx.x * 128 + threadIdx.x) * 8;
  const float4 low = reinterpret_cast<const float4*>(most + c)[0];
  const float4 high = reinterpret_cast<const float4*>(most + c)[1];
  float scale[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int j = 0; j < 8; ++j) scale[j] = __fdividef(1.0f, fmaxf(scale[j], 1e-30f));
#pragma unroll 4
  for (int k = 0; k < 8; ++k) {
    const long long at = 1ll * (blockIdx.y * 8 + k) * COLS + c;
    Eight v = load(between + at);
#pragma unroll
    for (int j = 0; j < 8; ++j) v.at[j] *= scale[j];
    store(y + at, v);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  int* most = static_cast<int*>(args.workspace);
  Between* between = reinterpret_cast<Between*>(most + COLS);
  cudaMemsetAsync(most, 0, COLS * 4, stream);
  scale_rows<<<ROWS, kThreads, 0, stream>>>(args.x, between);
  column_maxima<<<dim3(COLS / 1024, ROWS / kRows), 128, 0, stream>>>(between, most);
  scale_columns<<<dim3(COLS / 1024, ROWS / 8), 128, 0, stream>>>(between, most, args.y);
}
