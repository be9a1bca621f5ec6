// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Split-K: partial products in the workspace, and the last block of a tile, by a counter, adds them
// up.
#include "task.h"

constexpr int kSplit = 3;  // (the workspace holds 4 M N floats)
constexpr int kTiles = (M / 16) * (N / 16);

__global__ void matmul(const float* a, const float* b, float* c, float* parts, unsigned* counters) {
  __shared__ float as[16][17], bs[16][17];
  __shared__ bool last;
  const int x = threadIdx.x, y = threadIdx.y;
  const int i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = blockIdx.z * 16; k < K; k += 16 * kSplit) {
    as[y][x] = a[i * K + k + x];
    bs[y][x] = b[(k + y) * N + j];
    __syncthreads();
    for (int t = 0; t < 16; ++t) sum += as[y][t] * bs[t][x];
    __syncthreads();
  }
  parts[(blockIdx.z * M + i) * N + j] = sum;
  __threadfence();
  __syncthreads();
  if (x == 0 && y == 0) {
    last = atomicAdd(counters + blockIdx.y * gridDim.x + blockIdx.x, 1u) == kSplit - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = 0;
  for (int part = 0; part < kSplit; ++part) sum += __ldcg(parts + (part * M + i) * N + j);
  c[i * N + j] = sum;
}
KP_MEMSET(arg::workspace + 12ll * M * N, 0, kTiles * 4)
KP_LAUNCH(matmul, kp::dim(N / 16, M / 16, kSplit), kp::dim(16, 16), 0, arg::a, arg::b, arg::c,
          arg::workspace, arg::workspace + 12ll * M * N)
