// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void growth(const float* x, double* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = exp(4.0 * x[i]);
}
extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  growth<<<(N + 255) / 256, 256, 0, stream>>>(args.x, args.y);
}
