// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Barriers and asynchronous copies of libcu++ in two stages.
#include <cooperative_groups.h>

#include <cuda/barrier>

#include "task.h"

constexpr int kChunk = 2048;  // halves
static_assert(COLS % kChunk == 0);

#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void rowsum(const __half* x, float* y) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(128) __half stages[2][kChunk];
  __shared__ Barrier ready[2];
  __shared__ float all[256];
  const auto block = cooperative_groups::this_thread_block();
  x += 1ll * blockIdx.x * COLS;
  if (block.thread_rank() == 0) {
    init(&ready[0], block.size());
    init(&ready[1], block.size());
  }
  block.sync();
  const auto fetch = [&](int chunk) {
    cuda::memcpy_async(block, stages[chunk % 2], x + chunk * kChunk,
                       cuda::aligned_size_t<16>(kChunk * sizeof(__half)), ready[chunk % 2]);
  };
  fetch(0);
  float sum = 0;
  for (int chunk = 0; chunk < COLS / kChunk; ++chunk) {
    if (chunk + 1 < COLS / kChunk) fetch(chunk + 1);
    ready[chunk % 2].arrive_and_wait();
    for (int i = threadIdx.x; i < kChunk; i += 256) sum += __half2float(stages[chunk % 2][i]);
    block.sync();
  }
  all[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    block.sync();
    if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = all[0];
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  rowsum<<<ROWS, 256, 0, stream>>>(args.x, args.y);
}
