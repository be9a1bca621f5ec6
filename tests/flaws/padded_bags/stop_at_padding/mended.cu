// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A warp for each bag.
__global__ void __launch_bounds__(128, 2)
    bags(const float4* __restrict__ table, const int* __restrict__ index, float4* __restrict__ y) {
  const int bag = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int* list = index + bag * LENGTH;
  float4 s = make_float4(0, 0, 0, 0);
  // 32 indices at once; rows behind the end are those of index 0 and count nothing.
  bool open = true;
  for (int k = 0; k < LENGTH && open; k += 32) {
    const int mine = list[k + lane] % ENTRIES;
    const unsigned ends = __ballot_sync(0xffffffffu, mine == 0);
    const int count = ends == 0 ? 32 : __ffs(ends) - 1;
    open = ends == 0;
#pragma unroll 1
    for (int first = 0; first < 32; first += 16) {
      float4 v[16];
#pragma unroll
      for (int h = 0; h < 16; ++h) {
        const int row = __shfl_sync(0xffffffffu, mine, first + h);
        v[h] = table[(first + h < count ? row : 0) * 32 + lane];
      }
      __syncwarp();
#pragma unroll
      for (int h = 0; h < 16; ++h) {
        const float keep = first + h < count ? 1.0f : 0.0f;
        s.x += keep * v[h].x, s.y += keep * v[h].y, s.z += keep * v[h].z, s.w += keep * v[h].w;
      }
    }
  }
  y[bag * 32 + lane] = s;
}
static_assert(BAGS % 4 == 0 && LENGTH % 32 == 0);
KP_LAUNCH(bags, kp::dim(BAGS / 4), kp::dim(128), 0, arg::table, arg::index, arg::y)
