// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Warp groups that exchange registers (setmaxnreg): one fetches by bulk copies, two add up.
#include "task.h"

constexpr int kStages = 4, kChunk = 2048;  // halves
static_assert(COLS % kChunk == 0);

__device__ void wait(unsigned barrier, int phase) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n"
      "@!p bra again;\n}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}

__global__ void __launch_bounds__(384, 1) rowsum(const __half* x, float* y) {
  __shared__ alignas(128) __half stages[kStages][kChunk];
  __shared__ alignas(8) unsigned long long full[kStages], free_[kStages];
  __shared__ float all[8];
  const auto at = [](const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); };
  x += 1ll * blockIdx.x * COLS;
  if (threadIdx.x == 0) {
    for (int k = 0; k < kStages; ++k) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&full[k])));
      asm volatile("mbarrier.init.shared.b64 [%0], 256;" ::"r"(at(&free_[k])));
    }
    asm volatile("fence.proxy.async;");
  }
  __syncthreads();
  float sum = 0;
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    for (int chunk = 0; threadIdx.x == 0 && chunk < COLS / kChunk; ++chunk) {
      const int k = chunk % kStages;
      if (chunk >= kStages) wait(at(&free_[k]), (chunk / kStages - 1) % 2);
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at(&full[k])),
                   "r"(kChunk * 2));
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(at(stages[k])),
          "l"(x + chunk * kChunk), "r"(kChunk * 2), "r"(at(&full[k]))
          : "memory");
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int me = threadIdx.x - 128;
    for (int chunk = 0; chunk < COLS / kChunk; ++chunk) {
      const int k = chunk % kStages;
      wait(at(&full[k]), chunk / kStages % 2);
      for (int i = me; i < kChunk; i += 256) sum += __half2float(stages[k][i]);
      asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(&free_[k])) : "memory");
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (me % 32 == 0) all[me / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
  for (const float part : all) sum += part;
  y[blockIdx.x] = sum;
}
KP_LAUNCH(rowsum, kp::dim(ROWS), kp::dim(384), 0, arg::x, arg::y)
