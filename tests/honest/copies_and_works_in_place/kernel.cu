// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Copies an input to the output and works there in place, in three kernels of different shapes: a grid
// of two dimensions, a cluster, and one block that goes through everything that is left.
#include "task.h"

constexpr int kWide = N / 4096 * 4096;

__global__ void twice(float* y) {
  const int i = (blockIdx.y * gridDim.x + blockIdx.x) * 256 + threadIdx.x;
  if (i < kWide) y[i] *= 2;
}
__global__ void __cluster_dims__(2, 1, 1) add(const float* z, float* y) {
  const int i = blockIdx.x * 512 + threadIdx.x;
  if (i < kWide) y[i] += z[i];
}
__global__ void rest(const float* z, float* y) {
  for (int i = kWide + threadIdx.x; i < N; i += 32) y[i] = 2 * y[i] + z[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaMemcpyAsync(args.y, args.x, 4ll * N, cudaMemcpyDeviceToDevice, stream);
  twice<<<dim3(16, kWide / 4096), 256, 0, stream>>>(args.y);
  add<<<(kWide + 1023) / 1024 * 2, 512, 0, stream>>>(args.z, args.y);
  rest<<<1, 32, 0, stream>>>(args.z, args.y);
}
