// SPDX-License-Identifier: Apache-2.0
// Dense occupancy volume from weighted points that are already sorted by tile: a block accumulates
// the points of a tile of 4096 voxels in shared memory and writes the whole tile.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t err_ = (call);                                                       \
    if (err_ != cudaSuccess) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                        \
                   cudaGetErrorString(err_));                                        \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

template <class F>
static double time_us(F&& launch, int warm = 10, int iters = 50) {
  for (int i = 0; i < warm; ++i) launch();
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) launch();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  float ms = 0.f;
  CK(cudaEventElapsedTime(&ms, a, b));
  CK(cudaEventDestroy(a));
  CK(cudaEventDestroy(b));
  return 1000.0 * ms / iters;
}

__host__ __device__ inline uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

constexpr int kThreads = 256;
constexpr int kVoxels = 4096;

__global__ void __launch_bounds__(kThreads)
    voxel_kernel(const uint32_t* __restrict__ points, const uint32_t* __restrict__ offset,
                 uint4* __restrict__ volume) {
  __shared__ uint4 tile[kVoxels / 4];
  uint32_t* voxel = reinterpret_cast<uint32_t*>(tile);
#pragma unroll
  for (int i = 0; i < kVoxels / 4 / kThreads; ++i)
    tile[i * kThreads + threadIdx.x] = make_uint4(0, 0, 0, 0);
  const uint32_t first = offset[blockIdx.x], last = offset[blockIdx.x + 1];
  __syncthreads();
  for (uint32_t i = first + threadIdx.x; i < last; i += kThreads) {
    const uint32_t p = __ldcs(points + i);
    atomicAdd(voxel + (p & (kVoxels - 1)), p >> 12);
  }
  __syncthreads();
  uint4* dst = volume + static_cast<size_t>(blockIdx.x) * (kVoxels / 4);
#pragma unroll
  for (int i = 0; i < kVoxels / 4 / kThreads; ++i)
    __stcs(dst + i * kThreads + threadIdx.x, tile[i * kThreads + threadIdx.x]);
}

__global__ void fill_kernel(uint32_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = mix32(i);
}

int main() {
  const int tiles = 40000;
  std::vector<uint32_t> offset(tiles + 1, 0);
  for (int t = 0; t < tiles; ++t) offset[t + 1] = offset[t] + 256 + mix32(t ^ 0x1357u) % 512;
  const uint32_t count = offset[tiles];
  const size_t voxels = static_cast<size_t>(tiles) * kVoxels;
  uint32_t *points, *where, *volume;
  CK(cudaMalloc(&points, count * sizeof(uint32_t)));
  CK(cudaMalloc(&where, offset.size() * sizeof(uint32_t)));
  CK(cudaMalloc(&volume, voxels * sizeof(uint32_t)));
  fill_kernel<<<2048, 256>>>(points, count);
  CK(cudaMemcpy(where, offset.data(), offset.size() * sizeof(uint32_t), cudaMemcpyHostToDevice));
  const double us = time_us([&] {
    voxel_kernel<<<tiles, kThreads>>>(points, where, reinterpret_cast<uint4*>(volume));
  });

  std::vector<uint32_t> got(voxels);
  CK(cudaMemcpy(got.data(), volume, voxels * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  unsigned long long sum = 0;
  std::vector<uint32_t> ref(kVoxels);
  for (int t = 0; t < tiles; t += 3) {
    std::fill(ref.begin(), ref.end(), 0u);
    for (uint32_t i = offset[t]; i < offset[t + 1]; ++i) {
      const uint32_t p = mix32(i);
      ref[p & (kVoxels - 1)] += p >> 12;
    }
    for (int v = 0; v < kVoxels; ++v) {
      const uint32_t g = got[static_cast<size_t>(t) * kVoxels + v];
      sum += g;
      if (g != ref[v]) {
        std::fprintf(stderr, "tile %d voxel %d: got %u want %u\n", t, v, g, ref[v]);
        return 1;
      }
    }
  }
  std::printf("checksum: %llu\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
