// SPDX-License-Identifier: Apache-2.0
// task: slice
// expect: correct
// Loads tiles by TMA; the tensor map is declared with the launch, in the plan form.
#include "task.h"

constexpr int kRows = 16, kCols = 256;  // of a tile
static_assert(ROWS % kRows == 0 && COLS / 8 % kCols == 0);

__global__ void slice(const __grid_constant__ kp::TensorMap map, float* y) {
  __shared__ alignas(128) float tile[kRows * kCols];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at));
    asm volatile("fence.proxy.async;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at),
                 "r"(static_cast<unsigned>(sizeof tile)));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(tile))),
        "l"(&map), "r"(blockIdx.x * kCols), "r"(blockIdx.y * kRows), "r"(at)
        : "memory");
  }
  __syncthreads();
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n"
      "@!p bra again;\n}" ::"r"(at)
      : "memory");
  for (int i = threadIdx.x; i < kRows * kCols; i += 256) {
    y[1ll * (blockIdx.y * kRows + i / kCols) * (COLS / 8) + blockIdx.x * kCols + i % kCols] =
        tile[i];
  }
}

KP_LAUNCH(slice, kp::dim(COLS / 8 / kCols, ROWS / kRows), kp::dim(256), 0,
          kp::tensor_map(arg::x, kp::sizes(COLS, ROWS), kp::box(kCols, kRows)), arg::y)
