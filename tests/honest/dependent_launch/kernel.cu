// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Programmatic dependent launch: the second kernel starts while the first still works.
#include "task.h"

__global__ void first(const float* x, float* w) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) w[i] = 2 * x[i];
  cudaTriggerProgrammaticLaunchCompletion();
}
__global__ void second(const float* z, const float* w, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const float own = i < N ? z[i] : 0;
  cudaGridDependencySynchronize();
  if (i < N) y[i] = w[i] + own;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  float* w = static_cast<float*>(args.workspace);
  first<<<(N + 255) / 256, 256, 0, stream>>>(args.x, w);
  cudaLaunchConfig_t config{};
  config.gridDim = (N + 255) / 256;
  config.blockDim = 256;
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, second, args.z, static_cast<const float*>(w), args.y);
}
