// SPDX-License-Identifier: Apache-2.0
// Embedding bag: the mean of 32 bf16 rows (dim 256) per bag from a 2 GB table.
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
#include <cuda_bf16.h>

constexpr int kDim = 256;
constexpr int kBag = 32;
constexpr int kThreads = 256;
constexpr int kBatch = 8;

__device__ __forceinline__ void add2(float (&s)[8], int at, uint32_t x) {
  s[at] += __uint_as_float(x << 16);
  s[at + 1] += __uint_as_float(x & 0xffff0000u);
}

__global__ void __launch_bounds__(kThreads, 3)
    bag_kernel(const uint4* __restrict__ table, const int* __restrict__ index,
               float4* __restrict__ out, int bags) {
  const int lane = threadIdx.x & 31;
  const int bag = (blockIdx.x * kThreads + threadIdx.x) >> 5;
  if (bag >= bags) return;
  const int mine = __ldcs(index + static_cast<size_t>(bag) * kBag + lane);
  float s[8] = {};
#pragma unroll 1
  for (int b = 0; b < kBag; b += kBatch) {
    uint4 v[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int row = __shfl_sync(0xffffffffu, mine, b + i);
      v[i] = __ldg(table + static_cast<size_t>(row) * (kDim / 8) + lane);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      add2(s, 0, v[i].x);
      add2(s, 2, v[i].y);
      add2(s, 4, v[i].z);
      add2(s, 6, v[i].w);
    }
  }
  constexpr float f = 1.0f / kBag;
  float4* dst = out + static_cast<size_t>(bag) * (kDim / 4) + lane * 2;
  __stcs(dst, make_float4(s[0] * f, s[1] * f, s[2] * f, s[3] * f));
  __stcs(dst + 1, make_float4(s[4] * f, s[5] * f, s[6] * f, s[7] * f));
}

__host__ __device__ inline float value(uint32_t i) {
  return static_cast<float>(static_cast<int>(mix32(i) & 255) - 128) * (1.0f / 128.0f);
}
__global__ void fill_kernel(__nv_bfloat16* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = __float2bfloat16(value(i));
}

int main() {
  const int rows = 1 << 22, bags = 1 << 16;
  const uint32_t n = static_cast<uint32_t>(rows) * kDim;
  __nv_bfloat16* table;
  int* index;
  float* out;
  CK(cudaMalloc(&table, n * sizeof(*table)));
  CK(cudaMalloc(&index, sizeof(int) * bags * kBag));
  CK(cudaMalloc(&out, sizeof(float) * bags * kDim));
  fill_kernel<<<4096, 256>>>(table, n);
  std::vector<int> hi(static_cast<size_t>(bags) * kBag);
  for (size_t i = 0; i < hi.size(); ++i)
    hi[i] = static_cast<int>(mix32(static_cast<uint32_t>(i) + 0x77u) % rows);
  CK(cudaMemcpy(index, hi.data(), hi.size() * sizeof(int), cudaMemcpyHostToDevice));
  const double us = time_us([&] {
    bag_kernel<<<bags * 32 / kThreads, kThreads>>>(reinterpret_cast<const uint4*>(table), index,
                                                   reinterpret_cast<float4*>(out), bags);
  });
  std::vector<float> got(static_cast<size_t>(bags) * kDim);
  CK(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (int s = 0; s < 2000; ++s) {
    const int bag = s == 0 ? bags - 1 : static_cast<int>(mix32(s) % bags);
    for (int d = 0; d < kDim; ++d) {
      double ref = 0;
      for (int k = 0; k < kBag; ++k)
        ref += value(static_cast<uint32_t>(hi[static_cast<size_t>(bag) * kBag + k]) * kDim + d);
      ref /= kBag;
      const double g = got[static_cast<size_t>(bag) * kDim + d];
      sum += g;
      if (!(std::fabs(g - ref) < 1e-4)) {
        std::fprintf(stderr, "bag %d dim %d: got %g want %g\n", bag, d, g, ref);
        return 1;
      }
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
