// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 1024, kTile = 1024;
static_assert(N % kThreads == 0 && COUNT % kTile == 0);

__global__ void __launch_bounds__(kThreads)
    potentials(const float* __restrict__ place, const float* __restrict__ source,
               const float* __restrict__ mass, float* __restrict__ y) {
  __shared__ float4 tile[kTile];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float px = place[i], py = place[N + i], pz = place[2 * N + i];
  float sum = 0;
#pragma unroll 1
  for (int first = 0; first < COUNT; first += kTile) {
    __syncthreads();
#pragma unroll 1
    for (int k = threadIdx.x; k < kTile; k += kThreads) {
      const int j = first + k;
      tile[k] = make_float4(source[3 * j], source[3 * j + 1], source[3 * j + 2], mass[j]);
    }
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kTile; ++k) {
      const float4 s = tile[k];
      const float u = s.x - px, v = s.y - py, w = s.z - pz;
      sum += s.w * rsqrtf(u * u + v * v + w * w + 0.25f);
    }
  }
  y[i] = sum;
}
KP_LAUNCH(potentials, kp::dim(N / kThreads), kp::dim(kThreads), 0, arg::place, arg::source,
          arg::mass, arg::y)
