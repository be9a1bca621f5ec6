// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__device__ float by_scale(float x) {
  float v = x;
#pragma unroll 1
  for (int k = 0; k < 24; ++k) v = 0.5f * v + 0.25f * x;
  return v;
}
__device__ float by_norm(float x) {
  float v = x;
#pragma unroll 1
  for (int k = 0; k < 24; ++k) v = 0.25f * x * rsqrtf(1.0f + v * v);
  return v;
}
__device__ float by_root(float x) {
  float v = x;
#pragma unroll 1
  for (int k = 0; k < 24; ++k) {
    const float u = fabsf(v) + fabsf(x) + 1.0f;
    v = 0.5f * u * rsqrtf(u);
  }
  return v;
}
__device__ float by_decay(float x) {
  float v = x;
#pragma unroll 1
  for (int k = 0; k < 24; ++k) v = 0.3f * __expf(-fabsf(v)) + 0.1f * x;
  return v;
}

__global__ void maps(const float* x, float* y) {
  // A block's values go to its warps by channel.
  __shared__ float values[1024];
  for (int k = 0; k < 4; ++k) {
    values[k * 256 + threadIdx.x] = x[blockIdx.x * 1024 + k * 256 + threadIdx.x];
  }
  __syncthreads();
  for (int k = 0; k < 4; ++k) {
    const int i = 4 * (threadIdx.x % 64 + 64 * k) + threadIdx.x / 64;
    switch (i % 4) {
      case 0: values[i] = by_scale(values[i]); break;
      case 1: values[i] = by_norm(values[i]); break;
      case 2: values[i] = by_root(values[i]); break;
      default: values[i] = by_decay(values[i]);
    }
  }
  __syncthreads();
  for (int k = 0; k < 4; ++k) {
    y[blockIdx.x * 1024 + k * 256 + threadIdx.x] = values[k * 256 + threadIdx.x];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  static_assert(N % 1024 == 0);
  maps<<<N / 1024, 256, 0, stream>>>(args.x, args.y);
}
