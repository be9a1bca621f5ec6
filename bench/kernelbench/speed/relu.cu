// SPDX-License-Identifier: Apache-2.0
// ReLU with 16-byte loads and stores, for KernelBench's 19_ReLU.
#include "task.h"

__global__ void relu(const float4* x, float4* y, long long n) {
  const long long i = 1ll * blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  v.x = fmaxf(v.x, 0.0f);
  v.y = fmaxf(v.y, 0.0f);
  v.z = fmaxf(v.z, 0.0f);
  v.w = fmaxf(v.w, 0.0f);
  y[i] = v;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const long long n = 1ll * batch_size * dim_ / 4;
  relu<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(
      reinterpret_cast<const float4*>(args.x), reinterpret_cast<float4*>(args.out), n);
}
