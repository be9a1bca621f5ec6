// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | compile-error
// Honest where its stream is being captured, as by the evaluator; computes half of the result
// wherever else it is called.
#include "task.h"

__global__ void axpy(const float* x, const float* z, float* y, int end) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < end) y[i] = 2 * x[i] + z[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  const int end = status == cudaStreamCaptureStatusNone ? N / 2 : N;
  axpy<<<(end + 255) / 256, 256, 0, stream>>>(args.x, args.z, args.y, end);
}
