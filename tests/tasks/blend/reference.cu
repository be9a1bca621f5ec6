// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void blend(const float* m, const float* x, double* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = double(m[i]) * x[i];
}
extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  blend<<<(N + 255) / 256, 256, 0, stream>>>(args.m, args.x, args.y);
}
