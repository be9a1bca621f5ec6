// SPDX-License-Identifier: Apache-2.0
// Radix partitioning of 32-bit keys into 64 buckets (first pass of a partitioned join). A block
// ranks 4096 keys with shared-memory counters, reorders them in shared memory and appends every
// bucket's run to its region with one reservation per bucket.
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

constexpr int kBuckets = 64;
constexpr int kThreads = 256;
constexpr int kItems = 16;
constexpr int kTile = kThreads * kItems;

__global__ void __launch_bounds__(kThreads)
    partition_kernel(const uint32_t* __restrict__ in, uint32_t* __restrict__ out,
                     uint32_t* __restrict__ cursor, uint32_t capacity) {
  __shared__ uint32_t sorted[kTile];
  __shared__ uint32_t count[kBuckets], start[kBuckets], place[kBuckets];
  const uint4* src = reinterpret_cast<const uint4*>(in + static_cast<size_t>(blockIdx.x) * kTile);
  if (threadIdx.x < kBuckets) count[threadIdx.x] = 0;
  uint32_t key[kItems], rank[kItems];
#pragma unroll
  for (int j = 0; j < kItems / 4; ++j) {
    const uint4 v = __ldcs(src + j * kThreads + threadIdx.x);
    key[j * 4] = v.x, key[j * 4 + 1] = v.y, key[j * 4 + 2] = v.z, key[j * 4 + 3] = v.w;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kItems; ++j) rank[j] = atomicAdd(&count[key[j] % kBuckets], 1u);
  __syncthreads();
  if (threadIdx.x < 32) {
    const int b = threadIdx.x * 2;
    const uint32_t lo = count[b], hi = count[b + 1];
    uint32_t scan = lo + hi;
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      const uint32_t v = __shfl_up_sync(0xffffffffu, scan, o);
      if (static_cast<int>(threadIdx.x) >= o) scan += v;
    }
    const uint32_t s = scan - lo - hi;
    start[b] = s;
    start[b + 1] = s + lo;
    place[b] = b * capacity + atomicAdd(cursor + b, lo) - s;
    place[b + 1] = (b + 1) * capacity + atomicAdd(cursor + b + 1, hi) - s - lo;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kItems; ++j) sorted[start[key[j] % kBuckets] + rank[j]] = key[j];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    const uint32_t i = threadIdx.x * kItems + j;
    const uint32_t k = sorted[i];
    out[place[k % kBuckets] + i] = k;
  }
}

__global__ void fill_kernel(uint32_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = mix32(i);
}

int main() {
  const uint32_t n = 1u << 26;
  const uint32_t capacity = n / kBuckets + n / kBuckets / 8 + 1024;
  uint32_t *in, *out, *cursor;
  CK(cudaMalloc(&in, n * sizeof(uint32_t)));
  CK(cudaMalloc(&out, static_cast<size_t>(capacity) * kBuckets * sizeof(uint32_t)));
  CK(cudaMalloc(&cursor, kBuckets * sizeof(uint32_t)));
  fill_kernel<<<2048, 256>>>(in, n);
  const double us = time_us([&] {
    CK(cudaMemsetAsync(cursor, 0, kBuckets * sizeof(uint32_t)));
    partition_kernel<<<n / kTile, kThreads>>>(in, out, cursor, capacity);
  });

  std::vector<uint32_t> got(static_cast<size_t>(capacity) * kBuckets), used(kBuckets);
  CK(cudaMemcpy(got.data(), out, got.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(used.data(), cursor, kBuckets * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  std::vector<uint64_t> keys(kBuckets), total(kBuckets), mixed(kBuckets);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t k = mix32(i);
    ++keys[k % kBuckets];
    total[k % kBuckets] += k;
    mixed[k % kBuckets] += static_cast<uint64_t>(k) * k;
  }
  uint64_t sum = 0;
  for (uint32_t b = 0; b < kBuckets; ++b) {
    uint64_t t = 0, m = 0;
    bool good = used[b] == keys[b];
    for (uint32_t i = 0; good && i < used[b]; ++i) {
      const uint32_t k = got[static_cast<size_t>(b) * capacity + i];
      good = k % kBuckets == b;
      t += k;
      m += static_cast<uint64_t>(k) * k;
    }
    if (!good || t != total[b] || m != mixed[b]) {
      std::fprintf(stderr, "bucket %u is wrong\n", b);
      return 1;
    }
    sum += t;
  }
  std::printf("checksum: %llu\n", static_cast<unsigned long long>(sum));
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
