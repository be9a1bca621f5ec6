// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr long long kCount = 1ll * WINDOWS * 64;

__global__ void one(ReferenceArgs args) {
  const long long i = 1ll * blockIdx.x * 128 + threadIdx.x;
  if (i >= kCount) return;
  const long long k = i / 64, c = i % 64, rows = ROWS / (k + 1);
  double sum = 0;
  for (long long j = 0; j < rows; ++j) sum += args.x[(8 * k + j) % ROWS * 64 + c];
  args.y[i] = sum / rows;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  one<<<(kCount + 127) / 128, 128, 0, stream>>>(args);
}
