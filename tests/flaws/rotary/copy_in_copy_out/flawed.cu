// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void rotate(float4* v, const float2* cosine, const float2* sine) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= ROWS * PAIRS / 2) return;
  const int row = i / (PAIRS / 2);
  const float4 x = v[i];
  const float2 c = cosine[16 * row + i % 16], s = sine[16 * row + i % 16];
  v[i] = make_float4(x.x * c.x - x.y * s.x, x.x * s.x + x.y * c.x, x.z * c.y - x.w * s.y,
                     x.z * s.y + x.w * c.y);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = (ROWS * PAIRS / 2 + 255) / 256;
  const float2* cosine = reinterpret_cast<const float2*>(args.cosine);
  const float2* sine = reinterpret_cast<const float2*>(args.sine);
  const size_t bytes = sizeof(float) * 2 * ROWS * PAIRS;
  cudaMemcpyAsync(args.workspace, args.x, bytes, cudaMemcpyDeviceToDevice, stream);
  rotate<<<blocks, 256, 0, stream>>>(static_cast<float4*>(args.workspace), cosine, sine);
  cudaMemcpyAsync(args.y, args.workspace, bytes, cudaMemcpyDeviceToDevice, stream);
}
