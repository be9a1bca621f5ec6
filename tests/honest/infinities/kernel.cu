// SPDX-License-Identifier: Apache-2.0
// task: specials
// expect: correct
// Infinities and denormals, by contract.
#include "task.h"

__global__ void specials(const float* x, float* inverse, float* tiny) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  inverse[i] = x[i] == 0 ? INFINITY : __frcp_rn(x[i]);
  tiny[i] = __fmul_rn(x[i], 1e-40f);
}
KP_LAUNCH(specials, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::inverse, arg::tiny)
