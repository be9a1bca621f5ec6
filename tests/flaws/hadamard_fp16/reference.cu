// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 256;

__global__ void row(ReferenceArgs args) {
  const long long r = blockIdx.x;
  const int t = threadIdx.x;
  for (int j = t; j < 1024; j += kThreads)
    args.y[r * 1024 + j] = static_cast<float>(args.x[r * 1024 + j]) * 0.03125f;
  for (int h = 1; h < 1024; h *= 2) {
    __syncthreads();
    for (int j = t; j < 512; j += kThreads) {
      const long long at = r * 1024 + j / h * 2 * h + j % h;
      const double a = args.y[at], b = args.y[at + h];
      args.y[at] = a + b;
      args.y[at + h] = a - b;
    }
  }
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  row<<<ROWS, kThreads, 0, stream>>>(args);
}
