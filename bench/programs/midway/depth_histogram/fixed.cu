// SPDX-License-Identifier: Apache-2.0
// Histogram of 12-bit depth-camera samples (two bytes each) for exposure control. Counts are
// privatised in shared memory and merged into the frame histogram; a small second kernel turns
// it into a cumulative distribution.
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

constexpr int kBins = 4096;
constexpr int kThreads = 512;
constexpr int kVecsPerThread = 64;

__device__ __forceinline__ void count2(unsigned* bins, uint32_t two) {
  atomicAdd(bins + (two & (kBins - 1)), 1u);
  atomicAdd(bins + ((two >> 16) & (kBins - 1)), 1u);
}

__global__ void __launch_bounds__(kThreads)
    histogram_kernel(const uint4* __restrict__ samples, int vecs, unsigned* __restrict__ hist) {
  __shared__ __align__(16) unsigned bins[kBins];
#pragma unroll
  for (int i = threadIdx.x; i < kBins / 4; i += kThreads)
    reinterpret_cast<uint4*>(bins)[i] = make_uint4(0, 0, 0, 0);
  __syncthreads();

  const int first = blockIdx.x * kThreads * kVecsPerThread + threadIdx.x;
#pragma unroll 2
  for (int k = 0; k < kVecsPerThread; ++k) {
    const int i = first + k * kThreads;
    if (i < vecs) {
      const uint4 v = __ldcs(samples + i);
      count2(bins, v.x);
      count2(bins, v.y);
      count2(bins, v.z);
      count2(bins, v.w);
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.x; i < kBins; i += kThreads) {
    const unsigned c = bins[i];
    if (c) atomicAdd(hist + i, c);
  }
}

__global__ void cdf_kernel(const unsigned* __restrict__ hist, unsigned* __restrict__ cdf) {
  __shared__ unsigned warp_total[32];
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  const uint4 h = reinterpret_cast<const uint4*>(hist)[t];
  const unsigned a = h.x, b = a + h.y, c = b + h.z, d = c + h.w;
  unsigned s = d;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    const unsigned up = __shfl_up_sync(0xffffffffu, s, o);
    if (lane >= o) s += up;
  }
  if (lane == 31) warp_total[warp] = s;
  __syncthreads();
  if (warp == 0) {
    unsigned w = warp_total[lane];
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      const unsigned up = __shfl_up_sync(0xffffffffu, w, o);
      if (lane >= o) w += up;
    }
    warp_total[lane] = w;
  }
  __syncthreads();
  const unsigned before = s - d + (warp ? warp_total[warp - 1] : 0u);
  reinterpret_cast<uint4*>(cdf)[t] = make_uint4(before + a, before + b, before + c, before + d);
}

__host__ __device__ inline uint32_t depth_sample(uint32_t i) {
  const uint32_t r = mix32(i);
  return ((r & 4095u) + ((r >> 12) & 4095u)) >> 1;
}
__global__ void fill_kernel(uint16_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = static_cast<uint16_t>(depth_sample(i));
}

int main() {
  const uint32_t n = 1u << 27;
  const int vecs = static_cast<int>(n / 8);
  uint16_t* samples;
  unsigned *hist, *cdf;
  CK(cudaMalloc(&samples, n * sizeof(uint16_t)));
  CK(cudaMalloc(&hist, kBins * sizeof(unsigned)));
  CK(cudaMalloc(&cdf, kBins * sizeof(unsigned)));
  fill_kernel<<<2048, 256>>>(samples, n);
  const int per_block = kThreads * kVecsPerThread;
  const int grid = (vecs + per_block - 1) / per_block;
  const double us = time_us([&] {
    CK(cudaMemsetAsync(hist, 0, kBins * sizeof(unsigned)));
    histogram_kernel<<<grid, kThreads>>>(reinterpret_cast<const uint4*>(samples), vecs, hist);
    cdf_kernel<<<1, kBins / 4>>>(hist, cdf);
  });

  std::vector<unsigned> got(kBins), ref(kBins, 0);
  CK(cudaMemcpy(got.data(), cdf, kBins * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (uint32_t i = 0; i < n; ++i) ++ref[depth_sample(i)];
  unsigned long long sum = 0;
  for (int b = 0; b < kBins; ++b) {
    if (b) ref[b] += ref[b - 1];
    if (got[b] != ref[b]) {
      std::fprintf(stderr, "bin %d: got %u want %u\n", b, got[b], ref[b]);
      return 1;
    }
    sum += static_cast<unsigned long long>(got[b]) * (b + 1);
  }
  std::printf("checksum: %llu\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
