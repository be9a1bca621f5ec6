// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Assertions on the device, which hold.
#include <cassert>

#include "task.h"

__global__ void axpy(const float* x, const float* z, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  assert(blockDim.x == 256);
  if (i >= N) return;
  y[i] = 2 * x[i] + z[i];
  assert(y[i] == y[i]);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  axpy<<<(N + 255) / 256, 256, 0, stream>>>(args.x, args.z, args.y);
}
