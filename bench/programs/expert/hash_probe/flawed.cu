// SPDX-License-Identifier: Apache-2.0
// Probe side of a hash join: linear probing in a table of (key, payload) slots that stays in L2.
// Warps collect their matches in shared memory and append them to the result in long runs.
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
constexpr int kWarps = kThreads / 32;
constexpr int kBuffer = 1536;
constexpr uint32_t kEmpty = 0xffffffffu;

__host__ __device__ inline uint32_t home(uint32_t key, uint32_t mask) {
  return (key * 0x9e3779b1u >> 7) & mask;
}

__device__ __forceinline__ void append(const uint2* buffer, int count, uint2* out,
                                       uint32_t* total) {
  const int lane = threadIdx.x & 31;
  uint32_t at = 0;
  if (lane == 0) at = atomicAdd(total, static_cast<uint32_t>(count));
  at = __shfl_sync(0xffffffffu, at, 0);
  for (int i = lane; i < count; i += 32) out[at + i] = buffer[i];
}

__global__ void __launch_bounds__(kThreads)
    probe_kernel(const uint32_t* __restrict__ keys, uint32_t n, const uint2* __restrict__ table,
                 uint32_t mask, uint2* __restrict__ out, uint32_t* __restrict__ total) {
  extern __shared__ __align__(128) unsigned char raw[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  uint2* buffer = reinterpret_cast<uint2*>(raw) + warp * kBuffer;
  int held = 0;
  const uint32_t stride = gridDim.x * kThreads;
  for (uint32_t base = blockIdx.x * kThreads + warp * 32; base < n; base += stride) {
    const uint32_t i = base + lane;
    bool match = false;
    uint2 slot = make_uint2(kEmpty, 0);
    if (i < n) {
      const uint32_t key = keys[i];
      uint32_t h = home(key, mask);
      for (;;) {
        slot = __ldg(table + h);
        match = slot.x == key;
        if (match || slot.x == kEmpty) break;
        h = (h + 1) & mask;
      }
    }
    __syncwarp();
    const uint32_t found = __ballot_sync(0xffffffffu, match);
    if (match) buffer[held + __popc(found & ((1u << lane) - 1))] = make_uint2(i, slot.y);
    held += __popc(found);
    if (held > kBuffer - 32) {
      __syncwarp();
      append(buffer, held, out, total);
      __syncwarp();
      held = 0;
    }
  }
  __syncwarp();
  if (held > 0) append(buffer, held, out, total);
}

__host__ __device__ inline uint32_t probe_key(uint32_t i, uint32_t build) {
  return mix32(mix32(i ^ 0xabcd1234u) % (2 * build)) & 0x7fffffffu;
}
__global__ void fill_kernel(uint32_t* p, uint32_t n, uint32_t build) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = probe_key(i, build);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const uint32_t slots = 1u << 21, mask = slots - 1, build = slots / 2;
  const uint32_t n = 24u << 20;
  std::vector<uint2> host(slots, make_uint2(kEmpty, 0));
  for (uint32_t b = 0; b < build; ++b) {
    const uint32_t key = mix32(b) & 0x7fffffffu;
    uint32_t h = home(key, mask);
    while (host[h].x != kEmpty && host[h].x != key) h = (h + 1) & mask;
    if (host[h].x == kEmpty) host[h] = make_uint2(key, b * 3 + 1);
  }
  uint32_t *keys, *total;
  uint2 *table, *out;
  CK(cudaMalloc(&keys, n * sizeof(uint32_t)));
  CK(cudaMalloc(&total, sizeof(uint32_t)));
  CK(cudaMalloc(&table, slots * sizeof(uint2)));
  CK(cudaMalloc(&out, n * sizeof(uint2)));
  CK(cudaMemcpy(table, host.data(), slots * sizeof(uint2), cudaMemcpyHostToDevice));
  fill_kernel<<<2048, 256>>>(keys, n, build);
  const int bytes = kWarps * kBuffer * static_cast<int>(sizeof(uint2));
  CK(cudaFuncSetAttribute(probe_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const double us = time_us([&] {
    CK(cudaMemsetAsync(total, 0, sizeof(uint32_t)));
    probe_kernel<<<sms * 10, kThreads, bytes>>>(keys, n, table, mask, out, total);
  });

  uint32_t count = 0;
  CK(cudaMemcpy(&count, total, sizeof(count), cudaMemcpyDeviceToHost));
  std::vector<uint2> got(n);
  CK(cudaMemcpy(got.data(), out, n * sizeof(uint2), cudaMemcpyDeviceToHost));
  std::vector<uint32_t> payload(n, 0);
  if (count > n) return 1;
  for (uint32_t k = 0; k < count; ++k) {
    if (got[k].x >= n || payload[got[k].x] != 0) {
      std::fprintf(stderr, "match %u: probe row %u is wrong\n", k, got[k].x);
      return 1;
    }
    payload[got[k].x] = got[k].y;
  }
  unsigned long long sum = 0;
  for (uint32_t i = 0; i < n; ++i) {
    sum += payload[i];
    const uint32_t key = probe_key(i, build);
    uint32_t h = home(key, mask);
    while (host[h].x != kEmpty && host[h].x != key) h = (h + 1) & mask;
    const uint32_t ref = host[h].x == key ? host[h].y : 0;
    if (payload[i] != ref) {
      std::fprintf(stderr, "probe %u: got %u want %u\n", i, payload[i], ref);
      return 1;
    }
  }
  std::printf("checksum: %llu\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
