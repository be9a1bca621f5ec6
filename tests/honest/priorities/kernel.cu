// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Four streams of different priorities.
#include "task.h"

__global__ void part(const float* x, const float* z, float* y, int first, int count) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < count) y[first + i] = 2 * x[first + i] + z[first + i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  int least = 0, greatest = 0;
  cudaDeviceGetStreamPriorityRange(&least, &greatest);
  cudaEvent_t fork;
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventRecord(fork, stream);
  for (int k = 0; k < 4; ++k) {
    cudaStream_t own;
    cudaEvent_t join;
    cudaStreamCreateWithPriority(&own, cudaStreamNonBlocking, k % 2 == 0 ? greatest : least);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    cudaStreamWaitEvent(own, fork);
    const int first = k * (N / 4), count = k == 3 ? N - first : N / 4;
    part<<<(count + 255) / 256, 256, 0, own>>>(args.x, args.z, args.y, first, count);
    cudaEventRecord(join, own);
    cudaStreamWaitEvent(stream, join);
  }
}
