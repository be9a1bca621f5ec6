// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Two blocks of a cluster share the columns of B: each fetches half of a tile for both of them.
#include "task.h"

constexpr int kRows = 16, kCols = 64, kDepth = 16;  // of a block's tile, and of K at once
static_assert(M % (2 * kRows) == 0 && N % kCols == 0 && K % kDepth == 0);

__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

__global__ void matmul(const float* a, const float* b, float* c) {
  __shared__ alignas(128) float bs[kDepth][kCols];
  __shared__ alignas(8) unsigned long long full;
  const auto at = [](const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); };
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&full)));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("fence.proxy.async;");
  }
  cluster_barrier();
  const int i = blockIdx.x * kRows + threadIdx.x / 16, j = threadIdx.x % 16 * 4;
  const int first = blockIdx.y * kCols;
  float sum[4] = {};
  for (int k = 0, phase = 0; k < K; k += kDepth, phase ^= 1) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at(&full)),
                   "r"(static_cast<unsigned>(sizeof bs))
                   : "memory");
      for (int r = rank * kDepth / 2; r < (rank + 1) * kDepth / 2; ++r) {
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            "[%0], [%1], %2, [%3], %4;" ::"r"(at(bs[r])),
            "l"(b + (k + r) * N + first), "r"(kCols * 4), "r"(at(&full)),
            "h"(static_cast<unsigned short>(3))
            : "memory");
      }
    }
    asm volatile(
        "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n"
        "@!p bra again;\n}" ::"r"(at(&full)),
        "r"(phase)
        : "memory");
    for (int t = 0; t < kDepth; ++t) {
      const float left = a[i * K + k + t];
      for (int n = 0; n < 4; ++n) sum[n] += left * bs[t][j + n];
    }
    cluster_barrier();  // both have read the tile
  }
  for (int n = 0; n < 4; ++n) c[i * N + first + j + n] = sum[n];
}
KP_LAUNCH_CLUSTER(matmul, kp::dim(M / kRows, N / kCols), kp::dim(256), 0, kp::dim(2), arg::a,
                  arg::b, arg::c)
