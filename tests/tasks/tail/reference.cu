// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void tail(const float* x, const float* t, double* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  double sum = 0;
  for (int k = 0; k < K; ++k) sum += t[k] * cos(double(x[i]) + k);
  y[i] = x[i] + sum;
}
extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  tail<<<(N + 255) / 256, 256, 0, stream>>>(args.x, args.t, args.y);
}
