// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Three streams that meet crosswise at every rung, with copies and memsets between kernels, and a node
// that only joins: an honest graph of an odd shape.
#include "task.h"

constexpr int kPart = (N + 2) / 3;

__global__ void twice(float* w, int first) {
  const int i = first + blockIdx.x * 256 + threadIdx.x;
  if (i < min(first + kPart, N)) w[i] *= 2;
}
__global__ void add(const float* w, const float* z, float* y, int first) {
  const int i = first + blockIdx.x * 256 + threadIdx.x;
  if (i < min(first + kPart, N)) y[i] += w[i] + z[i];
}
static cudaEvent_t now(cudaStream_t stream) {
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, stream);
  return event;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  float* w = static_cast<float*>(args.workspace);
  cudaStream_t at[3] = {stream};
  const cudaEvent_t fork = now(stream);
  for (int k = 1; k < 3; ++k) {
    cudaStreamCreateWithFlags(&at[k], cudaStreamNonBlocking);
    cudaStreamWaitEvent(at[k], fork);
  }
  for (int k = 0; k < 3; ++k) {
    const int first = k * kPart, count = first + kPart < N ? kPart : N - first;
    cudaMemcpyAsync(w + first, args.x + first, 4ll * count, cudaMemcpyDeviceToDevice, at[k]);
    cudaMemsetAsync(args.y + first, 0, 4ll * count, at[(k + 1) % 3]);
  }
  for (int rung = 0; rung < 2; ++rung) {
    const cudaEvent_t reached[3] = {now(at[0]), now(at[1]), now(at[2])};
    for (int k = 0; k < 3; ++k) cudaStreamWaitEvent(at[k], reached[(k + 1 + rung) % 3]);
    for (int k = 0; rung == 0 && k < 3; ++k) {
      const int first = k * kPart;
      twice<<<(kPart + 255) / 256, 256, 0, at[k]>>>(w, first);
    }
  }
  for (int k = 0; k < 3; ++k) {
    add<<<(kPart + 255) / 256, 256, 0, at[k]>>>(w, args.z, args.y, k * kPart);
  }
  for (int k = 1; k < 3; ++k) cudaStreamWaitEvent(stream, now(at[k]));
}
