// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void specials(const float* x, double* inverse, double* tiny) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  inverse[i] = 1.0 / x[i];
  tiny[i] = x[i] * 1e-40f;
}
extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  specials<<<(N + 255) / 256, 256, 0, stream>>>(args.x, args.inverse, args.tiny);
}
