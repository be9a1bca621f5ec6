// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void permute(const float* x, float* y) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  if (at >= A * B * C) return;
  const int k = at % C, j = at / C % B, i = at / C / B;
  y[(k * A + i) * B + j] = x[at];
}
KP_LAUNCH(permute, kp::dim((A * B * C + 255) / 256), kp::dim(256), 0, arg::x, arg::y)
