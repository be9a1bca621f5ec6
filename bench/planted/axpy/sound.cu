// SPDX-License-Identifier: Apache-2.0
// Sound: 16-byte accesses, enough of them in flight, one launch.
#include "task.h"
__global__ void axpy(const float4* x, const float4* z, float4* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N / 4) return;
  const float4 a = x[i], b = z[i];
  y[i] = {2 * a.x + b.x, 2 * a.y + b.y, 2 * a.z + b.z, 2 * a.w + b.w};
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  axpy<<<(N / 4 + 255) / 256, 256, 0, stream>>>(reinterpret_cast<const float4*>(args.x), reinterpret_cast<const float4*>(args.z), reinterpret_cast<float4*>(args.y));
}
