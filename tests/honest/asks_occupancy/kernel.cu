// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: correct
// Sizes its grid by what the runtime says of the GPU and of the kernel.
#include "task.h"

__global__ void relu(const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) {
    y[i] = x[i] > 0 ? x[i] : 0;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  int device = 0, multiprocessors = 0, blocks = 0, least = 0, threads = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxPotentialBlockSize(&least, &threads, relu, 0, 512);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, relu, threads, 0);
  cudaFuncAttributes attributes{};
  cudaFuncGetAttributes(&attributes, relu);
  relu<<<multiprocessors * blocks, threads, 0, stream>>>(args.x, args.y);
}
