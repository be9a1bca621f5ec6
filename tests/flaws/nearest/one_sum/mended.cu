// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 128;

// All centroids wait in shared memory; a thread keeps its point in registers.
__global__ void __launch_bounds__(kThreads)
    nearest(const float* __restrict__ point, const float4* __restrict__ centroid,
            float* __restrict__ y) {
  extern __shared__ float4 staged[];
  for (int k = threadIdx.x; k < COUNT * 8; k += kThreads) staged[k] = centroid[k];
  __syncthreads();
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < N; i += gridDim.x * kThreads) {
    float p[32];
#pragma unroll
    for (int k = 0; k < 32; ++k) p[k] = point[k * N + i];
    float best = 3e38f;
#pragma unroll 1
    for (int c = 0; c < COUNT; c += 4) {
      float s[4] = {};
#pragma unroll
      for (int k = 0; k < 8; ++k) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float4 q = staged[(c + j) * 8 + k];
          s[j] += (p[4 * k] - q.x) * (p[4 * k] - q.x);
          s[j] += (p[4 * k + 1] - q.y) * (p[4 * k + 1] - q.y);
          s[j] += (p[4 * k + 2] - q.z) * (p[4 * k + 2] - q.z);
          s[j] += (p[4 * k + 3] - q.w) * (p[4 * k + 3] - q.w);
        }
      }
      best = fminf(fminf(best, fminf(s[0], s[1])), fminf(s[2], s[3]));
    }
    y[i] = best;
  }
}
KP_LAUNCH(nearest, kp::dim(132), kp::dim(kThreads), COUNT * 128, arg::point, arg::centroid, arg::y)
