// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// Two branches of the graph that nothing joins before the end: the second reads what the first
// writes, 60 us after it began, when it usually has. No edge says so: run in another order, or on a
// busy GPU, the result is wrong.
#include "task.h"

__global__ void twice(const float* x, float* w) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) w[i] = 2 * x[i];
}
__global__ void __launch_bounds__(256, 4) add(const volatile float* w, const float* z, float* y) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < 60000);
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256) y[i] = w[i] + z[i];
}
__global__ void last() {}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStream_t other;
  cudaEvent_t fork, join;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  float* w = static_cast<float*>(args.workspace);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(other, fork);
  twice<<<(N + 255) / 256, 256, 0, stream>>>(args.x, w);
  add<<<132, 256, 0, other>>>(w, args.z, args.y);
  cudaEventRecord(join, other);
  cudaStreamWaitEvent(stream, join);
  last<<<1, 1, 0, stream>>>();
}
