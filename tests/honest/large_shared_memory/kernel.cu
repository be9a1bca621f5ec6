// SPDX-License-Identifier: Apache-2.0
// task: softmax
// expect: correct
// 200 KB of dynamic shared memory, and a carve-out asked for.
#include "task.h"

__global__ void softmax(const float* x, float* y) {
  extern __shared__ float row[];  // whole rows, read once
  __shared__ float all[256];
  x += 1ll * blockIdx.x * COLS;
  y += 1ll * blockIdx.x * COLS;
  float result[2] = {-INFINITY, 0};
  for (int i = threadIdx.x; i < COLS; i += 256) {
    row[45000 + i] = x[i];
    result[0] = fmaxf(result[0], x[i]);
  }
  for (int phase = 0; phase < 2; ++phase) {
    for (int i = threadIdx.x; phase == 1 && i < COLS; i += 256) {
      result[1] += row[45000 + i] = expf(row[45000 + i] - result[0]);
    }
    __syncthreads();
    all[threadIdx.x] = result[phase];
    for (int half = 128; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) {
        const float other = all[threadIdx.x + half];
        all[threadIdx.x] = phase == 0 ? fmaxf(all[threadIdx.x], other) : all[threadIdx.x] + other;
      }
    }
    __syncthreads();
    result[phase] = all[0];
  }
  for (int i = threadIdx.x; i < COLS; i += 256) y[i] = row[45000 + i] / result[1];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  constexpr int kBytes = 200 << 10;
  cudaFuncSetAttribute(softmax, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  cudaFuncSetAttribute(softmax, cudaFuncAttributePreferredSharedMemoryCarveout,
                       cudaSharedmemCarveoutMaxShared);
  softmax<<<ROWS, 256, kBytes, stream>>>(args.x, args.y);
}
