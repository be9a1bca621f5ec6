// SPDX-License-Identifier: Apache-2.0
// task: collatz
// expect: correct
// Counts in 32 bits for as long as numbers fit, skips all zeros at the end of a number at once, and
// goes on in 64 bits where they do not: time depends on the values, as the task's does.
#include "task.h"

__global__ void collatz(const int* in, int* out) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= N) return;
  unsigned long long wide = static_cast<unsigned>(in[i]);
  int steps = 0;
  while (wide != 1) {
    if (wide <= 0x55555554u) {
      unsigned n = static_cast<unsigned>(wide);
      do {
        const int zeros = __ffs(static_cast<int>(n)) - 1;
        n >>= zeros;
        steps += zeros;
        if (n == 1) break;
        n = 3 * n + 1;
        ++steps;
      } while (n <= 0x55555554u);
      wide = n;
    } else {
      steps += 1;
      wide = wide % 2 == 0 ? wide / 2 : 3 * wide + 1;
    }
  }
  out[i] = steps;
}
KP_LAUNCH(collatz, kp::dim((N + 31) / 32), kp::dim(32), 0, arg::n, arg::steps)
