// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A warp moves rows of D floats, 16 bytes a lane.
static_assert(D % 128 == 0 && B % 8 == 0);

__global__ void __launch_bounds__(256)
    permute(const float4* __restrict__ x, float4* __restrict__ y) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int b = blockIdx.x * 8 + warp, c = blockIdx.y, a = blockIdx.z;
  const float4* from = x + ((a * B + b) * C + c) * (D / 4);
  float4* to = y + ((a * C + c) * B + b) * (D / 4);
  float4 v[D / 128];
#pragma unroll
  for (int k = 0; k < D / 128; ++k) v[k] = from[32 * k + lane];
#pragma unroll
  for (int k = 0; k < D / 128; ++k) to[32 * k + lane] = v[k];
}
KP_LAUNCH(permute, kp::dim(B / 8, C, A), kp::dim(256), 0, arg::x, arg::y)
