// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void __launch_bounds__(256) pick(ReferenceArgs args) {
  __shared__ int most[256], where[256];
  const int* p = args.point + 12288ll * blockIdx.x;
  int far[16], last = 0;
  for (int h = 0; h < 16; ++h) far[h] = 1 << 30;
  for (int k = 0; k < PICKS; ++k) {
    if (threadIdx.x == 0) args.y[1ll * blockIdx.x * PICKS + k] = last;
    int best = -1, at = 0;
    for (int h = 0; h < 16; ++h) {
      const int j = threadIdx.x * 16 + h;
      const int u = p[j] - p[last], v = p[4096 + j] - p[4096 + last];
      const int w = p[8192 + j] - p[8192 + last], d = u * u + v * v + w * w;
      far[h] = d < far[h] ? d : far[h];
      if (far[h] > best) best = far[h], at = j;
    }
    most[threadIdx.x] = best;
    where[threadIdx.x] = at;
    __syncthreads();
    best = -1;
    for (int t = 0; t < 256; ++t) {
      if (most[t] > best) best = most[t], last = where[t];
    }
    __syncthreads();
  }
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  pick<<<CLOUDS, 256, 0, stream>>>(args);
}
