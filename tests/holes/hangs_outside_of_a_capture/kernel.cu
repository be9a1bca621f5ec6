// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: timed-out | rejected | crashed | slow
// Honest in a capture; outside of one its kernel never ends, and neither does launch: with a
// multiprocessor's worth of blocks that spin and hold the GPU while their process is being ended.
#include "task.h"

__global__ void axpy(const float* x, const float* z, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2 * x[i] + z[i];
}
__global__ void spin(volatile float* y) {
  while (y[0] != -1234.5f || y[1] != 77.25f) {
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  axpy<<<(N + 255) / 256, 256, 0, stream>>>(args.x, args.z, args.y);
  if (status != cudaStreamCaptureStatusNone) return;
  spin<<<1056, 256, 0, stream>>>(args.y);
  for (;;) (void)cudaStreamSynchronize(stream);
}
