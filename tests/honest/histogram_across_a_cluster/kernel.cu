// SPDX-License-Identifier: Apache-2.0
// task: histogram
// expect: correct
// The bins of a cluster of four blocks lie in the shared memory of its blocks, a quarter in each,
// and are counted by atomics across the cluster.
#include <cooperative_groups.h>

#include "task.h"

constexpr int kBlocks = 4, kPart = (BINS + kBlocks - 1) / kBlocks;

__global__ void __cluster_dims__(kBlocks, 1, 1)
    histogram(const int* keys, unsigned long long* counts, bool* odd) {
  __shared__ unsigned bins[kPart];
  auto cluster = cooperative_groups::this_cluster();
  for (int k = threadIdx.x; k < kPart; k += blockDim.x) bins[k] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) {
    const int key = keys[i];
    atomicAdd(cluster.map_shared_rank(bins, key / kPart) + key % kPart, 1u);
    odd[i] = (key & 1) != 0;
  }
  cluster.sync();
  const int first = static_cast<int>(cluster.block_rank()) * kPart;
  for (int k = threadIdx.x; k < kPart && first + k < BINS; k += blockDim.x) {
    if (bins[k] > 0) atomicAdd(counts + first + k, static_cast<unsigned long long>(bins[k]));
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaMemsetAsync(args.counts, 0, BINS * 8, stream);
  histogram<<<132 * kBlocks, 512, 0, stream>>>(
      args.keys, reinterpret_cast<unsigned long long*>(args.counts), args.odd);
}
