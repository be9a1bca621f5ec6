// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Loads and reduces by CUB's block algorithms.
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>

#include "task.h"

constexpr int kThreads = 256, kItems = 8;
static_assert(COLS % (kThreads * kItems) == 0);

__global__ void rowsum(const __half* x, float* y) {
  using Load = cub::BlockLoad<__half, kThreads, kItems, cub::BLOCK_LOAD_VECTORIZE>;
  using Reduce = cub::BlockReduce<float, kThreads>;
  __shared__ typename Load::TempStorage loading;
  __shared__ typename Reduce::TempStorage reducing;
  const __half* row = x + 1ll * blockIdx.x * COLS;
  float sum = 0;
  for (int first = 0; first < COLS; first += kThreads * kItems) {
    __half items[kItems];
    Load(loading).Load(row + first, items);
    for (const __half item : items) sum += __half2float(item);
  }
  sum = Reduce(reducing).Sum(sum);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  rowsum<<<ROWS, kThreads, 0, stream>>>(args.x, args.y);
}
