// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kParts = 16, kPart = COLS / kParts, kThreads = 256;

__global__ void parts(const float* x, float* sums) {
  __shared__ float part[kThreads / 32];
  const float* mine = x + 1ll * blockIdx.y * COLS + 1ll * blockIdx.x * kPart;
  float s = 0;
  for (int j = threadIdx.x; j < kPart / 4; j += 8 * kThreads) {
    float4 v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int at = j + k * kThreads;
      v[k] = at < kPart / 4 ? reinterpret_cast<const float4*>(mine)[at] : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      s += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
    }
  }
  for (int m = 16; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int k = 1; k < kThreads / 32; ++k) s += part[k];
  sums[blockIdx.y * kParts + blockIdx.x] = s;
}

__global__ void add(const float* sums, float* y) {
  float s = 0;
  for (int k = 0; k < kParts; ++k) s += sums[blockIdx.x * kParts + k];
  y[blockIdx.x] = s / COLS;
}

KP_LAUNCH(parts, kp::dim(kParts, ROWS), kp::dim(kThreads), 0, arg::x, arg::workspace)
KP_LAUNCH(add, kp::dim(ROWS), kp::dim(1), 0, arg::workspace, arg::y)
