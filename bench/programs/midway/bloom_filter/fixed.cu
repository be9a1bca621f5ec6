// SPDX-License-Identifier: Apache-2.0
// Semi-join reduction: a stream of 64-bit keys is tested against a Bloom filter that fits in
// shared memory (not a power of two). Six probes a key; survivors are written as a bit map.
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

constexpr int kThreads = 1024;
constexpr int kProbes = 6;
constexpr uint32_t kWords = 49000;
constexpr uint64_t kBits = static_cast<uint64_t>(kWords) * 32;

__host__ __device__ inline uint64_t mix64(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}
__host__ __device__ inline uint64_t mul_high(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

struct Walk {
  uint32_t pos, step;
};
__host__ __device__ inline Walk walk_of(uint64_t key, uint64_t bits) {
  const uint64_t h = mix64(key);
  const uint32_t h2 = static_cast<uint32_t>(h) * 0x9e3779b1u;
  Walk w;
  w.pos = static_cast<uint32_t>(mul_high(h, bits));
  w.step = 1 + static_cast<uint32_t>((static_cast<uint64_t>(h2) * (bits - 1)) >> 32);
  return w;
}
__host__ __device__ inline void advance(Walk& w, uint32_t bits) {
  w.pos += w.step;
  if (w.pos >= bits) w.pos -= bits;
}

__device__ __forceinline__ bool maybe_member(const uint32_t* filter, uint64_t key,
                                             uint64_t bits) {
  Walk w = walk_of(key, bits);
  uint32_t all = 1;
#pragma unroll
  for (int k = 0; k < kProbes; ++k) {
    all &= filter[w.pos >> 5] >> (w.pos & 31);
    advance(w, static_cast<uint32_t>(bits));
  }
  return all & 1;
}

__global__ void __launch_bounds__(kThreads, 1)
    filter_kernel(const ulonglong2* __restrict__ keys, const uint4* __restrict__ image,
                  uint64_t bits, size_t pairs, uint2* __restrict__ survivors) {
  extern __shared__ __align__(16) uint32_t filter[];
  const int words4 = static_cast<int>((bits + 127) / 128);
  for (int i = threadIdx.x; i < words4; i += kThreads)
    reinterpret_cast<uint4*>(filter)[i] = image[i];
  __syncthreads();

  const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
  const size_t first = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
#pragma unroll 2
  for (size_t i = first; i < pairs; i += stride) {
    const ulonglong2 k = __ldcs(keys + i);
    const unsigned even = __ballot_sync(0xffffffffu, maybe_member(filter, k.x, bits));
    const unsigned odd = __ballot_sync(0xffffffffu, maybe_member(filter, k.y, bits));
    if ((threadIdx.x & 31) == 0) survivors[i >> 5] = make_uint2(even, odd);
  }
}

__host__ __device__ inline uint64_t stream_key(uint64_t i) {
  return (i * 0x9e3779b97f4a7c15ULL) ^ (i >> 3);
}
__global__ void keys_kernel(unsigned long long* keys, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    keys[i] = stream_key(i);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const size_t n = static_cast<size_t>(1) << 27;
  const size_t pairs = n / 2;
  std::vector<uint32_t> filter(kWords, 0);
  for (uint64_t i = 0; i < 120000; ++i) {
    Walk w = walk_of(stream_key(i * 1009), kBits);
    for (int k = 0; k < kProbes; ++k) {
      filter[w.pos >> 5] |= 1u << (w.pos & 31);
      advance(w, static_cast<uint32_t>(kBits));
    }
  }
  unsigned long long* keys;
  uint32_t* image;
  uint2* survivors;
  CK(cudaMalloc(&keys, n * sizeof(unsigned long long)));
  CK(cudaMalloc(&image, kWords * sizeof(uint32_t)));
  CK(cudaMalloc(&survivors, pairs / 32 * sizeof(uint2)));
  CK(cudaMemcpy(image, filter.data(), kWords * sizeof(uint32_t), cudaMemcpyHostToDevice));
  keys_kernel<<<sms * 8, 256>>>(keys, n);
  const int smem = kWords * static_cast<int>(sizeof(uint32_t));
  CK(cudaFuncSetAttribute(filter_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const double us = time_us([&] {
    filter_kernel<<<sms, kThreads, smem>>>(reinterpret_cast<const ulonglong2*>(keys),
                                           reinterpret_cast<const uint4*>(image), kBits, pairs,
                                           survivors);
  });

  std::vector<uint2> got(pairs / 32);
  CK(cudaMemcpy(got.data(), survivors, got.size() * sizeof(uint2), cudaMemcpyDeviceToHost));
  long long kept = 0;
  for (const uint2& g : got) kept += __builtin_popcount(g.x) + __builtin_popcount(g.y);
  for (uint32_t s = 0; s < 1000000; ++s) {
    const size_t i = s < 100000 ? static_cast<size_t>(s) * 1009 : mix32(s) % n;
    Walk w = walk_of(stream_key(i), kBits);
    uint32_t all = 1;
    for (int k = 0; k < kProbes; ++k) {
      all &= filter[w.pos >> 5] >> (w.pos & 31);
      advance(w, static_cast<uint32_t>(kBits));
    }
    const size_t pair = i / 2;
    const uint2 g = got[pair / 32];
    const uint32_t bit = ((i & 1 ? g.y : g.x) >> (pair % 32)) & 1;
    if (bit != (all & 1)) {
      std::fprintf(stderr, "key %zu: got %u want %u\n", i, bit, all & 1);
      return 1;
    }
  }
  std::printf("checksum: %lld\n", kept);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
