// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Four streams that fork, meet two by two and join: an honest graph of branches, where every reader
// waits for its writer.
#include "task.h"

constexpr int kPart = (N + 3) / 4;

__global__ void twice(const float* x, float* w, int first) {
  const int i = first + blockIdx.x * 256 + threadIdx.x;
  if (i < min(first + kPart, N)) w[i] = 2 * x[i];
}
__global__ void add(const float* w, const float* z, float* y, int first) {
  const int i = first + blockIdx.x * 256 + threadIdx.x;
  if (i < min(first + 2 * kPart, N)) y[i] = w[i] + z[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  float* w = static_cast<float*>(args.workspace);
  cudaEvent_t fork, done[4];
  cudaStream_t at[4] = {stream};
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventRecord(fork, stream);
  for (int k = 0; k < 4; ++k) {
    cudaEventCreateWithFlags(&done[k], cudaEventDisableTiming);
    if (k > 0) {
      cudaStreamCreateWithPriority(&at[k], cudaStreamNonBlocking, k % 2 == 0 ? 0 : -1);
      cudaStreamWaitEvent(at[k], fork);
    }
    twice<<<(kPart + 255) / 256, 256, 0, at[k]>>>(args.x, w, k * kPart);
    cudaEventRecord(done[k], at[k]);
  }
  for (int k = 0; k < 4; k += 2) {
    cudaStreamWaitEvent(at[k], done[k + 1]);
    add<<<(2 * kPart + 255) / 256, 256, 0, at[k]>>>(w, args.z, args.y, k * kPart);
  }
  cudaEventRecord(done[2], at[2]);
  cudaStreamWaitEvent(stream, done[2]);
}
