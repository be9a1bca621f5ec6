// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A warp for each token.
__global__ void __launch_bounds__(256)
    gate(const float2* __restrict__ x, float2* __restrict__ weight, int2* __restrict__ expert) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, token = blockIdx.x * 8 + warp;
  const float2 v = x[token * 32 + lane];
  float mine = fmaxf(v.x, v.y), best[2];
  int at = v.y > v.x ? 2 * lane + 1 : 2 * lane, found[2];
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int bits = __float_as_int(mine);
    const unsigned key = bits < 0 ? ~bits : bits | 0x80000000u;  // in the order of the values
    const unsigned most = __reduce_max_sync(0xffffffffu, key);
    const int from = __ffs(__ballot_sync(0xffffffffu, key == most)) - 1;
    best[k] = __shfl_sync(0xffffffffu, mine, from);
    found[k] = __shfl_sync(0xffffffffu, at, from);
    if (lane == from) mine = fminf(v.x, v.y), at ^= 1;
  }
  if (lane == 0) {
    const float e = __expf(best[1] - best[0]), w = __fdividef(1.0f, 1.0f + e);
    weight[token] = make_float2(w, e * w);
    expert[token] = make_int2(found[0], found[1]);
  }
}
static_assert(TOKENS % 8 == 0);
KP_LAUNCH(gate, kp::dim(TOKENS / 8), kp::dim(256), 0, arg::x, arg::weight, arg::expert)
