// SPDX-License-Identifier: Apache-2.0
// task: softmax
// expect: correct
// A cluster of four blocks a row, which exchange their parts through distributed shared memory.
#include <cooperative_groups.h>

#include "task.h"

namespace cg = cooperative_groups;

__global__ void __cluster_dims__(4, 1, 1) softmax(const float* x, float* y) {
  __shared__ float all[256], part;
  cg::cluster_group cluster = cg::this_cluster();
  const int row = blockIdx.x / 4, first = blockIdx.x % 4 * ((COLS + 3) / 4);
  const int end = min(first + (COLS + 3) / 4, COLS);
  x += 1ll * row * COLS;
  y += 1ll * row * COLS;
  float shared[2] = {};
  for (int phase = 0; phase < 2; ++phase) {
    float value = phase == 0 ? -INFINITY : 0;
    for (int i = first + threadIdx.x; i < end; i += 256) {
      value = phase == 0 ? fmaxf(value, x[i]) : value + expf(x[i] - shared[0]);
    }
    all[threadIdx.x] = value;
    for (int half = 128; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) {
        const float other = all[threadIdx.x + half];
        all[threadIdx.x] = phase == 0 ? fmaxf(all[threadIdx.x], other) : all[threadIdx.x] + other;
      }
    }
    if (threadIdx.x == 0) part = all[0];
    cluster.sync();
    shared[phase] = part;
    for (int r = 0; r < 4; ++r) {
      if (r == static_cast<int>(cluster.block_rank())) continue;
      const float other = *cluster.map_shared_rank(&part, r);
      shared[phase] = phase == 0 ? fmaxf(shared[phase], other) : shared[phase] + other;
    }
    cluster.sync();
  }
  for (int i = first + threadIdx.x; i < end; i += 256) y[i] = expf(x[i] - shared[0]) / shared[1];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  softmax<<<ROWS * 4, 256, 0, stream>>>(args.x, args.y);
}
