// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr long long kCount = 1ll * ROWS*PAIRS;

__global__ void one(ReferenceArgs args) {
  const long long i = 1ll * blockIdx.x * 128 + threadIdx.x;
  if (i >= kCount) return;
  const long long r = i / PAIRS, p = i % 32;
  const double a = args.x[2 * i], b = args.x[2 * i + 1], c = args.cosine[32 * r + p], s = args.sine[32 * r + p];
  args.y[2 * i] = a * c - b * s;
  args.y[2 * i + 1] = a * s + b * c;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  one<<<(kCount + 127) / 128, 128, 0, stream>>>(args);
}
