// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A warp for each row, 16 bytes a lane and load.
static_assert(M % 8 == 0 && K % 2048 == 0);

__global__ void __launch_bounds__(256)
    gemv(const uint4* __restrict__ w, const uint4* __restrict__ x, __nv_bfloat16* __restrict__ y) {
  const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  w += row * (K / 8) + lane;
  float2 sum[4] = {};
#pragma unroll 1
  for (int k = 0; k < K / 8; k += 256) {
    uint4 v[8];
#pragma unroll
    for (int h = 0; h < 8; ++h) v[h] = w[k + 32 * h];
#pragma unroll
    for (int h = 0; h < 8; ++h) {
      const uint4 u = x[k + 32 * h + lane];
      const __nv_bfloat162* a = reinterpret_cast<const __nv_bfloat162*>(&v[h]);
      const __nv_bfloat162* b = reinterpret_cast<const __nv_bfloat162*>(&u);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float2 f = __bfloat1622float2(a[j]), g = __bfloat1622float2(b[j]);
        sum[j].x += f.x * g.x;
        sum[j].y += f.y * g.y;
      }
    }
  }
  float s = ((sum[0].x + sum[0].y) + (sum[1].x + sum[1].y)) +
            ((sum[2].x + sum[2].y) + (sum[3].x + sum[3].y));
#pragma unroll
  for (int m = 16; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
  if (lane == 0) y[row] = __float2bfloat16(s);
}
KP_LAUNCH(gemv, kp::dim(M / 8), kp::dim(256), 0, arg::w, arg::x, arg::y)
