// SPDX-License-Identifier: Apache-2.0
// Pooled lookup of hashed features: 32 rows of 64 bf16 values per bag out of a table that fits in
// L2, one warp per bag with all of its lookups in flight.
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

constexpr int kRow = 64;
constexpr int kBag = 32;
constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    pool_kernel(const uint4* __restrict__ table, const uint32_t* __restrict__ index,
                float* __restrict__ out, uint32_t bags) {
  const uint32_t lane = threadIdx.x & 31;
  const uint32_t quarter = lane >> 3, part = lane & 7;
  const uint32_t bag = blockIdx.x * (kThreads / 32) + (threadIdx.x >> 5);
  if (bag >= bags) return;
  const uint32_t mine = __ldcs(index + static_cast<size_t>(bag) * kBag + lane);
  uint4 v[kBag / 4];
#pragma unroll
  for (int i = 0; i < kBag / 4; ++i) {
    const uint32_t r = __shfl_sync(0xffffffffu, mine, i * 4 + quarter);
    v[i] = __ldg(table + static_cast<size_t>(r) * (kRow / 8) + part);
  }
  float acc[8] = {};
#pragma unroll
  for (int i = 0; i < kBag / 4; ++i) {
    const uint32_t w[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      acc[2 * k] += __uint_as_float(w[k] << 16);
      acc[2 * k + 1] += __uint_as_float(w[k] & 0xffff0000u);
    }
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    acc[k] += __shfl_xor_sync(0xffffffffu, acc[k], 8);
    acc[k] += __shfl_xor_sync(0xffffffffu, acc[k], 16);
  }
  if (quarter < 2) {
    const float4 res = quarter == 0 ? make_float4(acc[0], acc[1], acc[2], acc[3])
                                    : make_float4(acc[4], acc[5], acc[6], acc[7]);
    __stcs(reinterpret_cast<float4*>(out + static_cast<size_t>(bag) * kRow + part * 8) + quarter,
           res);
  }
}

__host__ __device__ inline float weight(uint32_t i) {
  return static_cast<float>(static_cast<int>(mix32(i) & 127) - 63) * (1.0f / 64.0f);
}
__global__ void fill_kernel(uint16_t* t, uint32_t n, uint32_t* index, uint32_t lookups,
                            uint32_t rows) {
  const uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  for (uint32_t i = first; i < n; i += gridDim.x * blockDim.x)
    t[i] = static_cast<uint16_t>(__float_as_uint(weight(i)) >> 16);
  for (uint32_t i = first; i < lookups; i += gridDim.x * blockDim.x)
    index[i] = mix32(i ^ 0x2468aceu) % rows;
}

int main() {
  const uint32_t rows = 160000, bags = 1 << 18, lookups = bags * kBag;
  uint16_t* table;
  uint32_t* index;
  float* out;
  CK(cudaMalloc(&table, static_cast<size_t>(rows) * kRow * 2));
  CK(cudaMalloc(&index, static_cast<size_t>(lookups) * sizeof(uint32_t)));
  CK(cudaMalloc(&out, static_cast<size_t>(bags) * kRow * sizeof(float)));
  fill_kernel<<<2048, 256>>>(table, rows * kRow, index, lookups, rows);
  const double us = time_us([&] {
    pool_kernel<<<bags / (kThreads / 32), kThreads>>>(reinterpret_cast<const uint4*>(table), index,
                                                      out, bags);
  });

  std::vector<float> got(static_cast<size_t>(bags) * kRow);
  CK(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float v : got) sum += v;
  for (uint32_t s = 0; s < 200000; ++s) {
    const uint32_t e = mix32(s) % (bags * kRow);
    const uint32_t bag = e / kRow, c = e % kRow;
    float ref = 0;
    for (uint32_t k = 0; k < kBag; ++k)
      ref += weight(mix32((bag * kBag + k) ^ 0x2468aceu) % rows * kRow + c);
    if (!(std::fabs(got[e] - ref) <= 1e-4f)) {
      std::fprintf(stderr, "bag %u value %u: got %g want %g\n", bag, c, got[e], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
