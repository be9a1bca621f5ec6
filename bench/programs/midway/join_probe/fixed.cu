// SPDX-License-Identifier: Apache-2.0
// Radix-partitioned hash join, probe phase. Both sides were partitioned on the low key bits;
// every partition has an open-addressing table of 8-byte entries (key, payload). The probe
// sums the payloads of matching keys and counts the matches.
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
static double time_us(F&& launch, int warm = 20, int iters = 50) {
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

constexpr int kPartBits = 6;
constexpr int kParts = 1 << kPartBits;
constexpr int kSlotBits = 20;  // per partition
constexpr uint32_t kSlots = 1u << kSlotBits;
constexpr int kThreads = 256;
constexpr int kPerThread = 8;
constexpr int kTile = kThreads * kPerThread;
constexpr int kTilesPerPart = 512;
constexpr uint32_t kProbesPerPart = kTile * kTilesPerPart;
constexpr uint32_t kBuildPerPart = kSlots / 2;
constexpr unsigned long long kEmpty = ~0ull;

__host__ __device__ inline uint32_t slot_of(uint32_t key) {
  return (mix32(key >> kPartBits) * 0x9e3779b1u) >> (32 - kSlotBits);
}
__host__ __device__ inline uint32_t payload_of(uint32_t key) { return (key * 2654435761u) >> 20; }
__host__ __device__ inline uint32_t build_key(int part, uint32_t i) {
  return ((i * 3u + 1u) << kPartBits) | static_cast<uint32_t>(part);
}
// Two probes in three find a partner.
__host__ __device__ inline uint32_t probe_key(int part, uint32_t i) {
  const uint32_t r = mix32(i * kParts + part);
  const uint32_t b = (r >> 4) % kBuildPerPart;
  return build_key(part, b) + ((r % 3u == 0u) ? (1u << kPartBits) : 0u);
}

__global__ void build_kernel(unsigned long long* tables) {
  const int part = blockIdx.y;
  unsigned long long* table = tables + static_cast<size_t>(part) * kSlots;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < kBuildPerPart;
       i += gridDim.x * blockDim.x) {
    const uint32_t key = build_key(part, i);
    const unsigned long long e =
        (static_cast<unsigned long long>(payload_of(key)) << 32) | key;
    uint32_t s = slot_of(key);
    while (atomicCAS(table + s, kEmpty, e) != kEmpty) s = (s + 1) & (kSlots - 1);
  }
}
__global__ void keys_kernel(uint32_t* keys) {
  const int part = blockIdx.y;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < kProbesPerPart;
       i += gridDim.x * blockDim.x)
    keys[static_cast<size_t>(part) * kProbesPerPart + i] = probe_key(part, i);
}

struct TileRef {
  int part, tile;
};
__device__ __forceinline__ TileRef tile_ref(int t) {
  return {t / kTilesPerPart, t % kTilesPerPart};
}

__device__ __forceinline__ uint32_t key_of(unsigned long long e) {
  return static_cast<uint32_t>(e);
}

__global__ void __launch_bounds__(kThreads)
    probe_kernel(const unsigned long long* __restrict__ tables,
                 const uint32_t* __restrict__ keys, int tiles, unsigned long long* result) {
  unsigned long long sum = 0;
  unsigned int matches = 0;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    const TileRef ref = tile_ref(t);
    const unsigned long long* __restrict__ table =
        tables + static_cast<size_t>(ref.part) * kSlots;
    const uint4* src = reinterpret_cast<const uint4*>(
        keys + static_cast<size_t>(ref.part) * kProbesPerPart +
        static_cast<size_t>(ref.tile) * kTile);
    const uint4 k0 = __ldcs(src + threadIdx.x);
    const uint4 k1 = __ldcs(src + threadIdx.x + kThreads);
    const uint32_t key[kPerThread] = {k0.x, k0.y, k0.z, k0.w, k1.x, k1.y, k1.z, k1.w};
    uint32_t slot[kPerThread];
    unsigned long long entry[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) slot[i] = slot_of(key[i]);
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) entry[i] = __ldg(table + slot[i]);
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      while (entry[i] != kEmpty && key_of(entry[i]) != key[i]) {
        slot[i] = (slot[i] + 1) & (kSlots - 1);
        entry[i] = __ldg(table + slot[i]);
      }
      if (entry[i] != kEmpty) {
        sum += entry[i] >> 32;
        ++matches;
      }
    }
  }
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  matches = __reduce_add_sync(0xffffffffu, matches);
  __shared__ unsigned long long warp_sum[kThreads / 32];
  __shared__ unsigned int warp_matches[kThreads / 32];
  if ((threadIdx.x & 31) == 0) {
    warp_sum[threadIdx.x >> 5] = sum;
    warp_matches[threadIdx.x >> 5] = matches;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned long long s = 0, m = 0;
    for (int w = 0; w < kThreads / 32; ++w) {
      s += warp_sum[w];
      m += warp_matches[w];
    }
    atomicAdd(result, s);
    atomicAdd(result + 1, m);
  }
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const size_t slots = static_cast<size_t>(kParts) * kSlots;
  const size_t probes = static_cast<size_t>(kParts) * kProbesPerPart;
  unsigned long long *tables, *result;
  uint32_t* keys;
  CK(cudaMalloc(&tables, slots * sizeof(unsigned long long)));
  CK(cudaMalloc(&keys, probes * sizeof(uint32_t)));
  CK(cudaMalloc(&result, 2 * sizeof(unsigned long long)));
  CK(cudaMemset(tables, 0xff, slots * sizeof(unsigned long long)));
  build_kernel<<<dim3(128, kParts), 256>>>(tables);
  keys_kernel<<<dim3(128, kParts), 256>>>(keys);

  int per_sm = 0;
  CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, probe_kernel, kThreads, 0));
  const int grid = sms * per_sm;
  const int tiles = kParts * kTilesPerPart;
  const double us = time_us([&] {
    CK(cudaMemsetAsync(result, 0, 2 * sizeof(unsigned long long)));
    probe_kernel<<<grid, kThreads>>>(tables, keys, tiles, result);
  });

  unsigned long long got[2];
  CK(cudaMemcpy(got, result, sizeof(got), cudaMemcpyDeviceToHost));
  unsigned long long sum = 0, matches = 0;
  for (int part = 0; part < kParts; ++part)
    for (uint32_t i = 0; i < kProbesPerPart; ++i) {
      const uint32_t key = probe_key(part, i);
      const uint32_t j = key >> kPartBits;
      if (j % 3u == 1u) {
        sum += payload_of(key);
        ++matches;
      }
    }
  if (sum != got[0] || matches != got[1]) {
    std::fprintf(stderr, "got %llu/%llu want %llu/%llu\n", got[0], got[1], sum, matches);
    return 1;
  }
  std::printf("checksum: %llu %llu\n", got[0], got[1]);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
