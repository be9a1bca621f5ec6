// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void collatz(const int* in, int* out) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  long long n = in[i];
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  out[i] = steps;
}
extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  collatz<<<(N + 255) / 256, 256, 0, stream>>>(args.n, args.steps);
}
