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
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  switch (i % 4) {
    case 0: y[i] = by_scale(x[i]); break;
    case 1: y[i] = by_norm(x[i]); break;
    case 2: y[i] = by_root(x[i]); break;
    default: y[i] = by_decay(x[i]);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  maps<<<(N + 255) / 256, 256, 0, stream>>>(args.x, args.y);
}
