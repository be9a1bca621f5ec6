// SPDX-License-Identifier: Apache-2.0
// Multi-hash bucket ids of categorical features for a compositional embedding table, four hashes an id.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
  std::fprintf(stderr, "CUDA: %s (line %d)\n", cudaGetErrorString(e), __LINE__); std::exit(2); } } while (0)

namespace hashing {

struct Murmur64 {
  __host__ __device__ uint64_t operator()(uint64_t h) const {
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ull;
    return h ^ (h >> 33);
  }
};

struct TableRange {
  uint64_t rows;
  explicit TableRange(uint64_t n) : rows(n) {}
  __device__ __forceinline__ uint32_t operator()(uint64_t h) const {
    return uint32_t(h % rows);
  }
};

template <int kHashes>
struct Seeds {
  uint64_t value[kHashes];
};

template <typename Id, typename Hash, typename Range>
__global__ void __launch_bounds__(256) bucketize(const Id* __restrict__ ids, size_t count, Seeds<4> seeds, Range range,
                                                 uint4* __restrict__ buckets) {
  const Hash hash{};
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const uint64_t id = ids[i];
    uint4 b;
    b.x = range(hash(id ^ seeds.value[0]));
    b.y = range(hash(id ^ seeds.value[1]));
    b.z = range(hash(id ^ seeds.value[2]));
    b.w = range(hash(id ^ seeds.value[3]));
    buckets[i] = b;
  }
}

}  // namespace hashing

int main(int argc, char** argv) {
  const size_t n = 8u << 20;
  const uint64_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 39999983ull;
  std::vector<uint64_t> ids(n);
  uint64_t s = 42;
  for (auto& v : ids) {
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    v = s ^ (s >> 29);
  }
  const hashing::Seeds<4> seeds{{0x243f6a8885a308d3ull, 0x13198a2e03707344ull, 0xa4093822299f31d0ull, 0x082efa98ec4e6c89ull}};
  uint64_t* dids;
  uint4* dout;
  CUDA_CHECK(cudaMalloc(&dids, n * sizeof(uint64_t)));
  CUDA_CHECK(cudaMalloc(&dout, n * sizeof(uint4)));
  CUDA_CHECK(cudaMemcpy(dids, ids.data(), n * sizeof(uint64_t), cudaMemcpyHostToDevice));
  const hashing::TableRange range(rows);
  const int blocks = int((n + 1023) / 1024);
  auto step = [&] { hashing::bucketize<uint64_t, hashing::Murmur64><<<blocks, 256>>>(dids, n, seeds, range, dout); };
  for (int i = 0; i < 4; ++i) step();
  CUDA_CHECK(cudaDeviceSynchronize());
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  const int iters = 200;
  CUDA_CHECK(cudaEventRecord(begin));
  for (int i = 0; i < iters; ++i) step();
  CUDA_CHECK(cudaEventRecord(end));
  CUDA_CHECK(cudaEventSynchronize(end));
  CUDA_CHECK(cudaGetLastError());
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
  std::vector<uint4> got(n);
  CUDA_CHECK(cudaMemcpy(got.data(), dout, n * sizeof(uint4), cudaMemcpyDeviceToHost));
  const hashing::Murmur64 hash{};
  for (size_t i = 0; i < n; i += 61) {
    const uint32_t g[4] = {got[i].x, got[i].y, got[i].z, got[i].w};
    for (int k = 0; k < 4; ++k)
      if (g[k] != hash(ids[i] ^ seeds.value[k]) % rows) {
        std::printf("wrong bucket for id %zu hash %d\n", i, k);
        return 1;
      }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
