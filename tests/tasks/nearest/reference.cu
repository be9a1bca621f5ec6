// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void nearest(const float* a, const float* b, int* at) {
  __shared__ double sums[N];
  const int i = blockIdx.x, j = threadIdx.x;
  double sum = 0;
  for (int k = 0; k < K; ++k) sum += double(a[i * K + k]) * b[j * K + k];
  sums[j] = sum;
  __syncthreads();
  if (j != 0) return;
  int best = 0;
  for (int k = 1; k < N; ++k) best = sums[k] > sums[best] ? k : best;
  at[i] = best;
}
extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  nearest<<<M, N, 0, stream>>>(args.a, args.b, args.at);
}
