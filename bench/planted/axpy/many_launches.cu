// SPDX-License-Identifier: Apache-2.0
// Flaw: the work is cut into 2048 launches of a few microseconds each.
#include "task.h"
__global__ void axpy(const float* x, const float* z, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + z[i];
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  constexpr int kStep = (N + 2047) / 2048;
  for (int at = 0; at < N; at += kStep) {
    const int n = N - at < kStep ? N - at : kStep;
    axpy<<<(n + 255) / 256, 256, 0, stream>>>(args.x + at, args.z + at, args.y + at, n);
  }
}
