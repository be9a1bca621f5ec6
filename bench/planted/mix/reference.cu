// SPDX-License-Identifier: Apache-2.0
#include "task.h"
__global__ void mix(const float* x, double* y) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= N) return;
  double v[64];
  for (int k = 0; k < 64; ++k) v[k] = x[1ll * k * N + i];
  for (int round = 0; round < ROUNDS; ++round) {
    const double first = v[0];
    for (int k = 0; k < 64; ++k) v[k] = 0.5 * v[k] + 0.5 * (k < 63 ? v[k + 1] : first);
  }
  for (int k = 0; k < 64; ++k) y[1ll * k * N + i] = v[k];
}
extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  mix<<<(N + 127) / 128, 128, 0, stream>>>(args.x, args.y);
}
