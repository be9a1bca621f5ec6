// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void histogram(const int* keys, unsigned long long* counts, bool* odd) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  atomicAdd(counts + keys[i], 1ull);
  odd[i] = keys[i] % 2 != 0;
}
KP_MEMSET(arg::counts, 0, BINS * 8)
KP_LAUNCH(histogram, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::keys, arg::counts, arg::odd)
