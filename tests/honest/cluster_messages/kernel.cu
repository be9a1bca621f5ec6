// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Four blocks share a row; three send their sums into the first one's shared memory (st.async), an
// mbarrier there counts the bytes.
#include "task.h"

constexpr int kBlocks = 4;
static_assert(COLS % kBlocks == 0);

__global__ void rowsum(const __half* x, float* y) {
  __shared__ float all[8];
  __shared__ alignas(16) float received[kBlocks];
  __shared__ alignas(8) unsigned long long arrived;
  const auto at = [](const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); };
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0 && rank == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&arrived)));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at(&arrived)),
                 "r"((kBlocks - 1) * 4)
                 : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
  const int row = blockIdx.x / kBlocks, length = COLS / kBlocks;
  float sum = 0;
  for (int i = threadIdx.x; i < length; i += 256) {
    sum += __half2float(x[1ll * row * COLS + rank * length + i]);
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
  for (const float part : all) sum += part;
  if (rank != 0) {
    unsigned to, barrier;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(to) : "r"(at(&received[rank])));
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(barrier) : "r"(at(&arrived)));
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(to),
        "f"(sum), "r"(barrier)
        : "memory");
    return;
  }
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], "
      "0;\n@!p bra again;\n}" ::"r"(at(&arrived))
      : "memory");
  for (int k = 1; k < kBlocks; ++k) sum += static_cast<volatile float*>(received)[k];
  y[row] = sum;
}
KP_LAUNCH_CLUSTER(rowsum, kp::dim(kBlocks* ROWS), kp::dim(256), 0, kp::dim(kBlocks), arg::x, arg::y)
