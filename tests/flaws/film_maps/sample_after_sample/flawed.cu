// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void __launch_bounds__(256)
    modulate(const float4* __restrict__ x, const float4* __restrict__ scale,
             const float4* __restrict__ shift, float4* __restrict__ y) {
  const int j = blockIdx.x * 256 + threadIdx.x, b = blockIdx.y;
  const float4 v = x[b * (MAP / 4) + j], s = scale[j], t = shift[j];
  y[b * (MAP / 4) + j] =
      make_float4(v.x * s.x + t.x, v.y * s.y + t.y, v.z * s.z + t.z, v.w * s.w + t.w);
}
static_assert(MAP % 1024 == 0);
KP_LAUNCH(modulate, kp::dim(MAP / 1024, B), kp::dim(256), 0, arg::x, arg::scale, arg::shift, arg::y)
