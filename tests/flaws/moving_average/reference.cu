// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr long long kCount = 1ll * C;

__global__ void one(ReferenceArgs args) {
  const long long i = 1ll * blockIdx.x * 128 + threadIdx.x;
  if (i >= kCount) return;
  double h = 0;
  for (int s = 0; s < T; ++s) {
    h = 0.9 * h + 0.1 * args.x[static_cast<long long>(s) * C + i];
    args.y[static_cast<long long>(s) * C + i] = h;
  }
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  one<<<(kCount + 127) / 128, 128, 0, stream>>>(args);
}
