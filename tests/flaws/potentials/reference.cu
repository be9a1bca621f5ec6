// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

constexpr long long kCount = 1ll * N;

__global__ void one(ReferenceArgs args) {
  const long long i = 1ll * blockIdx.x * 128 + threadIdx.x;
  if (i >= kCount) return;
  const double x = args.place[i], y = args.place[1ll * N + i], z = args.place[2ll * N + i];
  double sum = 0;
  for (int j = 0; j < COUNT; ++j) {
    const double u = args.source[3 * j] - x, v = args.source[3 * j + 1] - y;
    const double w = args.source[3 * j + 2] - z;
    sum += args.mass[j] / sqrt(u * u + v * v + w * w + 0.25);
  }
  args.y[i] = sum;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  one<<<(kCount + 127) / 128, 128, 0, stream>>>(args);
}
