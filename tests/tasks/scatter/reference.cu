// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void clear(double* y) { y[blockIdx.x * 256 + threadIdx.x] = 0; }
__global__ void add(const int* at, const float* x, double* y) {
  for (int i = 0; i < N; ++i) y[at[i]] += x[i];
}
extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  clear<<<PLACES / 256, 256, 0, stream>>>(args.y);
  add<<<1, 1, 0, stream>>>(args.at, args.x, args.y);
}
