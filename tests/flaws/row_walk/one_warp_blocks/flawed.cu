// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kWarps = 1;

// One warp per walker: the lanes read a record together.
__global__ void walk(const int* record, const int* start, int* total) {
  const int lane = threadIdx.x % 32;
  const int walker = blockIdx.x * kWarps + threadIdx.x / 32;
  int p = start[walker] & (NODES - 1);
  int sum = 0;
#pragma unroll 1
  for (int s = 0; s < STEPS; ++s) {
    const int v = record[p * 32 + lane];
    sum += v;
    p = __shfl_sync(0xffffffffu, v, 0) & (NODES - 1);
  }
  total[walker * 32 + lane] = sum;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  walk<<<WALKERS / kWarps, 32 * kWarps, 0, stream>>>(args.record, args.start, args.total);
}
