// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__device__ inline float one(float a, float b, float r) {
  return __fdividef(a, 1.0f + __expf(-a)) * b + r;
}

__global__ void __launch_bounds__(256)
    swiglu(const float4* __restrict__ a, const float4* __restrict__ b,
           const float4* __restrict__ r, float4* __restrict__ y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N / 4) return;
  const float4 u = a[i], v = b[i], w = r[i];
  y[i] = make_float4(one(u.x, v.x, w.x), one(u.y, v.y, w.y), one(u.z, v.z, w.z),
                     one(u.w, v.w, w.w));
}
KP_LAUNCH(swiglu, kp::dim((N / 4 + 255) / 256), kp::dim(256), 0, arg::a, arg::b, arg::r, arg::y)
