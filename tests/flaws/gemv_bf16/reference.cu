// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr long long kCount = 1ll * M;

__global__ void one(ReferenceArgs args) {
  const long long i = 1ll * blockIdx.x * 128 + threadIdx.x;
  if (i >= kCount) return;
  double sum = 0;
  for (long long k = 0; k < K; ++k) {
    sum +=
        static_cast<double>(static_cast<float>(args.w[i * K + k])) * static_cast<float>(args.x[k]);
  }
  args.y[i] = sum;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  one<<<(kCount + 127) / 128, 128, 0, stream>>>(args);
}
