// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Blocks that stay take tiles from a counter in the workspace until there are none left; each sum
// is in fp32 over tiles of 32 x 32 in dynamic shared memory, by four elements a thread.
#include "task.h"

constexpr int kTile = 32, kTiles = (M / kTile) * (N / kTile);
static_assert(M % kTile == 0 && N % kTile == 0 && K % kTile == 0);

__global__ void __launch_bounds__(256) matmul(const float* a, const float* b, float* c, int* next) {
  extern __shared__ float shared[];
  float(*as)[kTile + 1] = reinterpret_cast<float(*)[kTile + 1]>(shared);
  float(*bs)[kTile] = reinterpret_cast<float(*)[kTile]>(shared + kTile * (kTile + 1));
  __shared__ int tile;
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    const int mine = tile;
    if (mine >= kTiles) return;
    const int i = mine / (N / kTile) * kTile, j = mine % (N / kTile) * kTile;
    float sum[4] = {};
    for (int k = 0; k < K; k += kTile) {
      for (int r = 0; r < 4; ++r) {
        as[y + 8 * r][x] = a[(i + y + 8 * r) * K + k + x];
        bs[y + 8 * r][x] = b[(k + y + 8 * r) * N + j + x];
      }
      __syncthreads();
      for (int t = 0; t < kTile; ++t) {
        for (int r = 0; r < 4; ++r) sum[r] = fmaf(as[y + 8 * r][t], bs[t][x], sum[r]);
      }
      __syncthreads();
    }
    for (int r = 0; r < 4; ++r) c[(i + y + 8 * r) * N + j + x] = sum[r];
  }
}
KP_MEMSET(arg::workspace, 0, 4)
KP_LAUNCH(matmul, kp::dim(132), kp::dim(256), (kTile * (kTile + 1) + kTile * kTile) * 4, arg::a,
          arg::b, arg::c, arg::workspace)
