// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// Eight columns a thread, whose bias stays in registers for four rows.
constexpr int kRows = 4;
static_assert(COLS % 2048 == 0 && ROWS % kRows == 0);

__device__ inline float2 gelu(float2 v) {
  const float2 u = make_float2(v.x * (1.5957691216f + 0.0713548163f * v.x * v.x),
                               v.y * (1.5957691216f + 0.0713548163f * v.y * v.y));
  return make_float2(__fdividef(v.x, 1.0f + __expf(-u.x)), __fdividef(v.y, 1.0f + __expf(-u.y)));
}

__global__ void __launch_bounds__(256)
    apply(const uint4* __restrict__ x, const uint4* __restrict__ bias,
          const uint4* __restrict__ rest, uint4* __restrict__ y) {
  const int c = blockIdx.x * 256 + threadIdx.x, at = blockIdx.y * kRows * (COLS / 8) + c;
  const uint4 b = bias[c];
  uint4 v[kRows], r[kRows];
#pragma unroll
  for (int k = 0; k < kRows; ++k) v[k] = x[at + k * (COLS / 8)], r[k] = rest[at + k * (COLS / 8)];
  const __nv_bfloat162* bs = reinterpret_cast<const __nv_bfloat162*>(&b);
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    __nv_bfloat162* vs = reinterpret_cast<__nv_bfloat162*>(&v[k]);
    const __nv_bfloat162* rs = reinterpret_cast<const __nv_bfloat162*>(&r[k]);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 f = __bfloat1622float2(vs[j]), add = __bfloat1622float2(bs[j]);
      const float2 g = gelu(make_float2(f.x + add.x, f.y + add.y)), h = __bfloat1622float2(rs[j]);
      vs[j] = __floats2bfloat162_rn(g.x + h.x, g.y + h.y);
    }
    y[at + k * (COLS / 8)] = v[k];
  }
}
KP_LAUNCH(apply, kp::dim(COLS / 2048, ROWS / kRows), kp::dim(256), 0, arg::x, arg::bias, arg::rest,
          arg::y)
