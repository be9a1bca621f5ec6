// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

constexpr long long kCount = 1ll * HEADS * 128;

__global__ void one(ReferenceArgs args) {
  const long long i = 1ll * blockIdx.x * 128 + threadIdx.x;
  if (i >= kCount) return;
  const long long head = i / 128;
  double total = 0, sum = 0;
  for (long long j = head * S; j < (head + 1) * S; ++j) {
    double dot = 0;
    for (int d = 0; d < 128; ++d) {
      dot += static_cast<double>(static_cast<float>(args.q[128 * head + d])) *
             static_cast<float>(args.k[128 * j + d]);
    }
    const double p = exp(dot / 11.313708498984761);
    total += p;
    sum += p * static_cast<float>(args.v[128 * j + i % 128]);
  }
  args.y[i] = sum / total;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  one<<<(kCount + 127) / 128, 128, 0, stream>>>(args);
}
