// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// A pipeline of cp.async through four stages of shared memory.
#include "task.h"

constexpr int kStages = 4, kChunk = 2048;  // halves
static_assert(COLS % kChunk == 0);

__device__ void fetch(const __half* from, __half* to, int chunk) {
  if (chunk < COLS / kChunk) {
    const unsigned at = static_cast<unsigned>(
        __cvta_generic_to_shared(to + chunk % kStages * kChunk + threadIdx.x * 8));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at),
                 "l"(from + chunk * kChunk + threadIdx.x * 8));
  }
  asm volatile("cp.async.commit_group;");
}

__global__ void rowsum(const __half* x, float* y) {
  __shared__ alignas(16) __half stages[kStages * kChunk];
  __shared__ float all[256];
  x += 1ll * blockIdx.x * COLS;
  for (int k = 0; k < kStages - 1; ++k) fetch(x, stages, k);
  float sum = 0;
  for (int chunk = 0; chunk < COLS / kChunk; ++chunk) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2));
    __syncthreads();
    fetch(x, stages, chunk + kStages - 1);
    const __half* mine = stages + chunk % kStages * kChunk + threadIdx.x * 8;
    for (int i = 0; i < 8; ++i) sum += __half2float(mine[i]);
  }
  all[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = all[0];
}
KP_LAUNCH(rowsum, kp::dim(ROWS), kp::dim(256), 0, arg::x, arg::y)
