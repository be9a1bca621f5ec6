// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A warp for each bag.
__global__ void __launch_bounds__(128, 2)
    bags(const float4* __restrict__ table, const int* __restrict__ index, float4* __restrict__ y) {
  const int bag = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int* list = index + bag * LENGTH;
  float4 s = make_float4(0, 0, 0, 0);
  for (int k = 0; k < LENGTH; ++k) {
    const int row = list[k] % ENTRIES;
    if (row == 0) break;
    const float4 v = table[row * 32 + lane];
    s.x += v.x, s.y += v.y, s.z += v.z, s.w += v.w;
  }
  y[bag * 32 + lane] = s;
}
static_assert(BAGS % 4 == 0);
KP_LAUNCH(bags, kp::dim(BAGS / 4), kp::dim(128), 0, arg::table, arg::index, arg::y)
