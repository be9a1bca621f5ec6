// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

constexpr int kThreads = 256;

__device__ double block_sum(double v) {
  __shared__ double part[kThreads];
  __syncthreads();
  part[threadIdx.x] = v;
  __syncthreads();
  for (int h = kThreads / 2; h > 0; h /= 2) {
    if (threadIdx.x < h) part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + h];
    __syncthreads();
  }
  return part[0];
}

__global__ void row(ReferenceArgs args) {
  const long long r = blockIdx.x;
  const int t = threadIdx.x;
  double s = 0;
  for (long long j = t; j < COLS; j += kThreads) s += fabs(static_cast<double>(args.x[r * COLS + j]));
  s = block_sum(s);
  if (t == 0) args.y[r] = s;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  row<<<ROWS, kThreads, 0, stream>>>(args);
}
