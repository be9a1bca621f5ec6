// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr long long kCount = 1ll * HEADS * S * S;

__global__ void one(ReferenceArgs args) {
  const long long i = 1ll * blockIdx.x * 128 + threadIdx.x;
  if (i >= kCount) return;
  const long long row = i / S, head = row / S;
  double sum = 0;
  for (int d = 0; d < 64; ++d) {
    sum += static_cast<double>(static_cast<float>(args.q[64 * row + d])) *
           static_cast<float>(args.k[64 * (head * S + i % S) + d]);
  }
  args.y[i] = sum / 8;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  one<<<(kCount + 127) / 128, 128, 0, stream>>>(args);
}
