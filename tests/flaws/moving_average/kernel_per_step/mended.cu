// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// The state stays in a register; eight steps' inputs are loaded ahead.
__global__ void average(const float* __restrict__ x, float* __restrict__ y) {
  const int c = blockIdx.x * 256 + threadIdx.x;
  if (c >= C) return;
  float h = 0;
  for (int t = 0; t < T; t += 8) {
    float v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = x[(t + k) * C + c];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      h = 0.9f * h + 0.1f * v[k];
      y[(t + k) * C + c] = h;
    }
  }
}
static_assert(T % 8 == 0);

extern "C" void launch(const Args& args, cudaStream_t stream) {
  average<<<(C + 255) / 256, 256, 0, stream>>>(args.x, args.y);
}
