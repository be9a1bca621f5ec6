// SPDX-License-Identifier: Apache-2.0
#include "task.h"

static_assert(N % 4 == 0);

__global__ void __launch_bounds__(256)
    saxpy(const float4* __restrict__ x, const float4* __restrict__ z, float4* __restrict__ y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N / 4) return;
  const float4 a = x[i], b = z[i];
  y[i] = make_float4(2 * a.x + b.x, 2 * a.y + b.y, 2 * a.z + b.z, 2 * a.w + b.w);
}
KP_LAUNCH(saxpy, kp::dim((N / 4 + 255) / 256), kp::dim(256), 0, arg::x, arg::z, arg::y)
