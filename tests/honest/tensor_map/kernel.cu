// SPDX-License-Identifier: Apache-2.0
// task: slice
// expect: correct
// Loads tiles by TMA; the tensor map is made on the host and travels as a parameter.
#include <cuda.h>

#include "task.h"

constexpr int kRows = 16, kCols = 256;  // of a tile
static_assert(ROWS % kRows == 0 && COLS / 8 % kCols == 0);

__global__ void slice(const __grid_constant__ CUtensorMap map, float* y) {
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

extern "C" void launch(const Args& args, cudaStream_t stream) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 13000
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                   &found);
#else
  cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  CUtensorMap map{};
  const cuuint64_t sizes[] = {COLS, ROWS}, strides[] = {COLS * sizeof(float)};
  const cuuint32_t box[] = {kCols, kRows}, steps[] = {1, 1};
  encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(args.x), sizes, strides, box,
         steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
         CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  slice<<<dim3(COLS / 8 / kCols, ROWS / kRows), 256, 0, stream>>>(map, args.y);
}
