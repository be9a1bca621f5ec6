// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: correct
// Never touches a float: the bits of what is positive (and no NaN) pass through a mask, in pairs of
// 64 bits where they are aligned, staged through shared memory by bulk copies both ways.
#include "task.h"

constexpr int kTile = 4096;  // elements of a block
constexpr int kWhole = N / kTile;

__device__ unsigned kept(unsigned bits) { return bits - 1u < 0x7f800000u ? bits : 0u; }

__global__ void __launch_bounds__(256) relu(const unsigned* x, unsigned* y) {
  if (blockIdx.x == kWhole) {  // what is left over
    for (int i = kWhole * kTile + threadIdx.x; i < N; i += 256) y[i] = kept(x[i]);
    return;
  }
  __shared__ alignas(128) unsigned tile[kTile];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(kTile * 4)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(at),
        "l"(x + 1ll * blockIdx.x * kTile), "r"(kTile * 4), "r"(bar)
        : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(bar)
        : "memory");
  }
  unsigned long long* pairs = reinterpret_cast<unsigned long long*>(tile);
  for (int i = threadIdx.x; i < kTile / 2; i += 256) {
    const unsigned long long both = pairs[i];
    pairs[i] = kept(static_cast<unsigned>(both)) |
               static_cast<unsigned long long>(kept(static_cast<unsigned>(both >> 32))) << 32;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     y + 1ll * blockIdx.x * kTile),
                 "r"(at), "r"(kTile * 4)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  relu<<<kWhole + 1, 256, 0, stream>>>(reinterpret_cast<const unsigned*>(args.x),
                                       reinterpret_cast<unsigned*>(args.y));
}
