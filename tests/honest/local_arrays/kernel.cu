// SPDX-License-Identifier: Apache-2.0
// task: permute
// expect: correct
// Arrays in local memory, indexed by what is known only at run time.
#include "task.h"

__global__ void permute(const float* x, float* y) {
  const int at = blockIdx.x * 128 + threadIdx.x;
  if (at >= A * B) return;
  float row[C];
  for (int k = 0; k < C; ++k) row[(k * 5 + at) % C] = x[at * C + k];
  for (int k = 0; k < C; ++k) y[(k * A + at / B) * B + at % B] = row[(k * 5 + at) % C];
}
KP_LAUNCH(permute, kp::dim((A * B + 127) / 128), kp::dim(128), 0, arg::x, arg::y)
