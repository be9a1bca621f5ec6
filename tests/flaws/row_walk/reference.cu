// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 256;

__global__ void row(ReferenceArgs args) {
  const long long r = blockIdx.x;
  const int t = threadIdx.x;
  int p = args.start[r] & (NODES - 1);
  int sum[32] = {};
  for (int s = 0; s < STEPS; ++s) {
    for (int k = t; k < 32; k += kThreads) sum[k] += args.record[static_cast<long long>(p) * 32 + k];
    p = args.record[static_cast<long long>(p) * 32] & (NODES - 1);
  }
  for (int k = t; k < 32; k += kThreads) args.total[r * 32 + k] = sum[k];
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  row<<<WALKERS, kThreads, 0, stream>>>(args);
}
