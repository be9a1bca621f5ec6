// SPDX-License-Identifier: Apache-2.0
// task: attention
// expect: correct
// A warp takes rows from a queue for as long as there are any, with two naive passes over all keys:
// persistent, without shared memory, and in an order that the clock decides.
#include "task.h"

static_assert(D == 64);
__device__ int next_row;

__global__ void begin() { next_row = 0; }
__global__ void attend(const float* q, const float* k, const float* v, float* y) {
  const int lane = threadIdx.x;
  for (;;) {
    int row = 0;
    if (lane == 0) row = atomicAdd(&next_row, 1);
    row = __shfl_sync(~0u, row, 0);
    if (row >= ROWS) return;
    const float q0 = q[row * D + lane], q1 = q[row * D + lane + 32];
    const auto product = [&](int key) {
      float sum = q0 * k[key * D + lane] + q1 * k[key * D + lane + 32];
      for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
      return sum / 8;
    };
    float largest = -INFINITY;
    for (int key = 0; key < KEYS; ++key) largest = fmaxf(largest, product(key));
    float sum = 0, y0 = 0, y1 = 0;
    for (int key = 0; key < KEYS; ++key) {
      const float weight = expf(product(key) - largest);
      sum += weight;
      y0 += weight * v[key * D + lane];
      y1 += weight * v[key * D + lane + 32];
    }
    y[row * D + lane] = y0 / sum;
    y[row * D + lane + 32] = y1 / sum;
  }
}
KP_LAUNCH(begin, kp::dim(1), kp::dim(1), 0)
KP_LAUNCH(attend, kp::dim(528), kp::dim(32), 0, arg::q, arg::k, arg::v, arg::y)
