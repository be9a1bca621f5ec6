// SPDX-License-Identifier: Apache-2.0
// The definition, with sums in double precision: one thread per element, tiles in shared memory.
#include "task.h"

constexpr int kTile = 16;

__global__ void product(const float* a, const float* b, double* c) {
  __shared__ double a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int m = blockIdx.y * kTile + y, n = blockIdx.x * kTile + x;
  double sum = 0;
  for (int k = 0; k < K; k += kTile) {
    a_tile[y][x] = m < M && k + x < K ? a[1ll * m * K + k + x] : 0;
    b_tile[y][x] = k + y < K && n < N ? b[(1ll * k + y) * N + n] : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
    __syncthreads();
  }
  if (m < M && n < N) c[1ll * m * N + n] = sum;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  const dim3 grid((N + kTile - 1) / kTile, (M + kTile - 1) / kTile);
  product<<<grid, dim3(kTile, kTile), 0, stream>>>(args.a, args.b, args.c);
}
