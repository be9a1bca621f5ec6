// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr long long kCount = 1ll * COUNT * 4096;

__global__ void one(ReferenceArgs args) {
  const long long i = 1ll * blockIdx.x * 128 + threadIdx.x;
  if (i >= kCount) return;
  const long long first = i / 4096 * 4096, r = i / 64 % 64, j = i % 64;
  double sum = 0;
  for (int k = 0; k < 64; ++k) {
    sum += static_cast<double>(static_cast<float>(args.a[first + 64 * r + k])) *
           static_cast<float>(args.b[first + 64 * k + j]);
  }
  args.c[i] = sum;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  one<<<(kCount + 127) / 128, 128, 0, stream>>>(args);
}
