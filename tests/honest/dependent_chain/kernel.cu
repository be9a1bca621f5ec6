// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Three kernels in a chain of programmatic dependencies, by PTX's own instructions.
#include "task.h"

__device__ int index() { return blockIdx.x * 256 + threadIdx.x; }

__global__ void twice(const float* x, float* w) {
  asm volatile("griddepcontrol.launch_dependents;");
  if (index() < N) w[index()] = 2 * x[index()];
}
__global__ void add(const float* z, float* w) {
  asm volatile("griddepcontrol.launch_dependents;");
  const float own = index() < N ? z[index()] : 0;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (index() < N) w[index()] += own;
}
__global__ void give(const float* w, float* y) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (index() < N) y[index()] = w[index()];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  auto* w = static_cast<float*>(args.workspace);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = (N + 255) / 256;
  config.blockDim = 256;
  config.stream = stream;
  cudaLaunchKernelEx(&config, twice, args.x, w);
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, add, args.z, w);
  cudaLaunchKernelEx(&config, give, static_cast<const float*>(w), args.y);
}
