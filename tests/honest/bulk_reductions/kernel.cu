// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Split-K whose partial tiles are added to the result by bulk reductions (TMA without a map).
#include "task.h"

constexpr int kSplit = 4;
static_assert(M % 16 == 0 && N % 16 == 0 && K % (16 * kSplit) == 0);

__global__ void matmul(const float* a, const float* b, float* c) {
  __shared__ float as[16][17], bs[16][17];
  __shared__ alignas(128) float tile[16][16];
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
  tile[y][x] = sum;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (x != 0) return;
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 64;" ::"l"(
                   c + i * N + blockIdx.x * 16),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(tile[y])))
               : "memory");
  asm volatile("cp.async.bulk.commit_group;");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
KP_MEMSET(arg::c, 0, 4ll * M * N)
KP_LAUNCH(matmul, kp::dim(N / 16, M / 16, kSplit), kp::dim(16, 16), 0, arg::a, arg::b, arg::c)
