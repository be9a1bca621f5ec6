// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: correct given-distribution-only | wrong-result | rejected
// A warp looks at 32 of its 512 elements and copies them all if none of those is negative: right
// where all or half of the elements are negative, wrong where few are.
#include "task.h"

__global__ void relu(const float* x, float* y) {
  const int first = blockIdx.x * 4096 + threadIdx.x / 32 * 512, lane = threadIdx.x % 32;
  if (first >= N) return;
  const bool careful = __any_sync(~0u, first + lane < N && x[min(first + lane, N - 1)] < 0);
  for (int i = first + lane; i < min(first + 512, N); i += 32) {
    y[i] = careful && x[i] < 0 ? 0 : x[i];
  }
}
KP_LAUNCH(relu, kp::dim((N + 4095) / 4096), kp::dim(256), 0, arg::x, arg::y)
