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
KP_LAUNCH(collatz, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::n, arg::steps)
