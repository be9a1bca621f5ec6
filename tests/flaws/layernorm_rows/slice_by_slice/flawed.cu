// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__device__ float block_sum(float v) {
  __shared__ float part[8];
  for (int m = 16; m > 0; m /= 2) v += __shfl_xor_sync(0xffffffffu, v, m);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int k = 0; k < 8; ++k) v += part[k];
  return v;
}

__global__ void __launch_bounds__(256) normalise(const float* x, float* y) {
  const float4* row = reinterpret_cast<const float4*>(x + 1ll * blockIdx.x * COLS);
  float4* out = reinterpret_cast<float4*>(y + 1ll * blockIdx.x * COLS);
  constexpr int kEach = COLS / 1024;
  float4 v[kEach];
  float s = 0, q = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    v[k] = row[threadIdx.x + 256 * k];
    s += v[k].x + v[k].y + v[k].z + v[k].w;
  }
  const float m = block_sum(s) / COLS;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    v[k] = make_float4(v[k].x - m, v[k].y - m, v[k].z - m, v[k].w - m);
    q += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
  }
  const float scale = rsqrtf(block_sum(q) / COLS + 1e-5f);
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    out[threadIdx.x + 256 * k] =
        make_float4(v[k].x * scale, v[k].y * scale, v[k].z * scale, v[k].w * scale);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int row = 0; row < ROWS; row += 32) {
    normalise<<<32, 256, 0, stream>>>(args.x + row * COLS, args.y + row * COLS);
  }
}
