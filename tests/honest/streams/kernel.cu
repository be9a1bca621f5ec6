// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Two streams, joined by events; memsets and copies among the kernels.
#include "task.h"

template <int half>
__global__ void part(const float* x, const float* z, float* w) {
  const int i = (blockIdx.x + half * gridDim.x) * 256 + threadIdx.x;
  if (i < N) w[i] += 2 * x[i] + z[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStream_t other;
  cudaEvent_t fork, join;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  float* w = static_cast<float*>(args.workspace);
  cudaMemsetAsync(w, 0, N * sizeof(float), stream);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(other, fork);
  const int blocks = (N + 511) / 512;
  part<0><<<blocks, 256, 0, stream>>>(args.x, args.z, w);
  part<1><<<blocks, 256, 0, other>>>(args.x, args.z, w);
  cudaEventRecord(join, other);
  cudaStreamWaitEvent(stream, join);
  cudaMemcpyAsync(args.y, w, N * sizeof(float), cudaMemcpyDeviceToDevice, stream);
}
