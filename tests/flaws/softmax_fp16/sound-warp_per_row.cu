// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A warp for each row, 32 values in the registers of a lane; no barriers.
static_assert(ROWS % 4 == 0);

__global__ void __launch_bounds__(128) softmax(const uint4* __restrict__ x, uint4* __restrict__ y) {
  const int lane = threadIdx.x % 32, at = (blockIdx.x * 4 + threadIdx.x / 32) * 128 + lane;
  uint4 v[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = x[at + 32 * k];
  float2 f[16];
  float most = -65504.0f, sum = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    f[k] = __half22float2(reinterpret_cast<const __half2*>(&v[k / 4])[k % 4]);
    most = fmaxf(most, fmaxf(f[k].x, f[k].y));
  }
#pragma unroll
  for (int m = 16; m > 0; m /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, m));
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    f[k] = make_float2(__expf(f[k].x - most), __expf(f[k].y - most));
    sum += f[k].x + f[k].y;
  }
#pragma unroll
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, m);
  const float scale = __fdividef(1.0f, sum);
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    reinterpret_cast<__half2*>(&v[k / 4])[k % 4] =
        __floats2half2_rn(f[k].x * scale, f[k].y * scale);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) y[at + 32 * k] = v[k];
}
KP_LAUNCH(softmax, kp::dim(ROWS / 4), kp::dim(128), 0, arg::x, arg::y)
