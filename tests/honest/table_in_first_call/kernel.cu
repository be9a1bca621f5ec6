// SPDX-License-Identifier: Apache-2.0
// task: collatz
// expect: correct
// A table of the lengths of all sequences that begin below 2^18, which depends on no input, is made
// by the first call after loading and used by all later ones.
#include "task.h"

constexpr int kTable = 1 << 18;
__device__ unsigned short lengths[kTable];
__device__ unsigned made = 0;

__global__ void make() {
  if (*(volatile unsigned*)&made != 0) return;
  const int at = blockIdx.x * 256 + threadIdx.x;
  long long n = max(at, 1);
  unsigned short steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  lengths[at] = steps;
}
__global__ void collatz(const int* in, int* out) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i == 0) *(volatile unsigned*)&made = 1;
  if (i >= N) return;
  long long n = in[i];
  int steps = 0;
  for (; n >= kTable; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  out[i] = steps + lengths[n];
}
KP_LAUNCH(make, kp::dim(kTable / 256), kp::dim(256), 0)
KP_LAUNCH(collatz, kp::dim((N + 127) / 128), kp::dim(128), 0, arg::n, arg::steps)
