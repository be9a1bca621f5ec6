// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A warp for each token.
__global__ void __launch_bounds__(256)
    gate(const float2* __restrict__ x, float2* __restrict__ weight, int2* __restrict__ expert) {
  __shared__ float values[8][64];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, token = blockIdx.x * 8 + warp;
  reinterpret_cast<float2*>(values[warp])[lane] = x[token * 32 + lane];
  __syncwarp();
  if (lane == 0) {
    float best = __int_as_float(0xff800000), next = best;
    int first = 0, second = 0;
    for (int k = 0; k < 64; ++k) {
      const float v = values[warp][k];
      if (v > best) {
        next = best, second = first;
        best = v, first = k;
      } else if (v > next) {
        next = v, second = k;
      }
    }
    const float e = __expf(next - best), w = __fdividef(1.0f, 1.0f + e);
    weight[token] = make_float2(w, e * w);
    expert[token] = make_int2(first, second);
  }
}
static_assert(TOKENS % 8 == 0);
KP_LAUNCH(gate, kp::dim(TOKENS / 8), kp::dim(256), 0, arg::x, arg::weight, arg::expert)
