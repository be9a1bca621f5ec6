// SPDX-License-Identifier: Apache-2.0
// Token collisions of documents (sum of squared token counts over 1024 hash bins). Documents vary
// in length; a warp counts one at a time in bins of its own in shared memory. One block of 16
// warps per SM, documents dealt out in rounds.
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

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kBins = 1024;

__device__ __forceinline__ void count8(uint32_t* bins, uint4 v) {
  const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    atomicAdd(bins + (w[k] & (kBins - 1)), 1u);
    atomicAdd(bins + (w[k] >> 16 & (kBins - 1)), 1u);
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    collisions_kernel(const uint4* __restrict__ tokens, const uint32_t* __restrict__ offset,
                      uint32_t* __restrict__ out, int documents) {
  extern __shared__ __align__(128) unsigned char raw[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  uint32_t* bins = reinterpret_cast<uint32_t*>(raw) + warp * kBins;
  uint4* quads = reinterpret_cast<uint4*>(bins);
#pragma unroll
  for (int i = 0; i < kBins / 128; ++i) quads[i * 32 + lane] = make_uint4(0, 0, 0, 0);
  __syncwarp();
  const int stride = gridDim.x * kWarps;
  for (int base = blockIdx.x * kWarps; base < documents; base += stride) {
    const int d = base + warp;
    const uint32_t first = d < documents ? offset[d] : 0;
    const uint32_t last = d < documents ? offset[d + 1] : 0;
    for (uint32_t i = first + lane; i < last; i += 64) {
      const uint4 a = __ldcs(tokens + i);
      if (i + 32 < last) {
        const uint4 b = __ldcs(tokens + i + 32);
        count8(bins, b);
      }
      count8(bins, a);
    }
    __syncthreads();
    uint32_t sum = 0;
#pragma unroll
    for (int i = 0; i < kBins / 128; ++i) {
      const uint4 c = quads[i * 32 + lane];
      quads[i * 32 + lane] = make_uint4(0, 0, 0, 0);
      sum += c.x * c.x + c.y * c.y + c.z * c.z + c.w * c.w;
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (lane == 0 && d < documents) out[d] = sum;
    __syncwarp();
  }
}

__global__ void fill_kernel(uint32_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = mix32(i);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int documents = sms * kWarps * 80;
  std::vector<uint32_t> offset(documents + 1, 0);  // in units of eight 16-bit tokens
  for (int d = 0; d < documents; ++d) {
    const double u = (mix32(d ^ 0x77777777u) & 0xffff) / 65536.0;
    offset[d + 1] = offset[d] + 48 + static_cast<uint32_t>(768 * u * u * u * u);
  }
  const uint32_t words = offset[documents] * 4;
  uint32_t *tokens, *where, *out;
  CK(cudaMalloc(&tokens, static_cast<size_t>(words) * 4));
  CK(cudaMalloc(&where, offset.size() * sizeof(uint32_t)));
  CK(cudaMalloc(&out, documents * sizeof(uint32_t)));
  fill_kernel<<<2048, 256>>>(tokens, words);
  CK(cudaMemcpy(where, offset.data(), offset.size() * sizeof(uint32_t), cudaMemcpyHostToDevice));
  const int bytes = kWarps * kBins * 4;
  CK(cudaFuncSetAttribute(collisions_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const double us = time_us([&] {
    collisions_kernel<<<sms, kThreads, bytes>>>(reinterpret_cast<const uint4*>(tokens), where, out,
                                                documents);
  });

  std::vector<uint32_t> got(documents);
  CK(cudaMemcpy(got.data(), out, documents * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  unsigned long long sum = 0;
  std::vector<uint32_t> bins(kBins);
  for (int d = 0; d < documents; ++d) {
    sum += got[d];
    if (d % 4 != 0 && d < documents - 100) continue;
    std::fill(bins.begin(), bins.end(), 0u);
    for (uint32_t w = offset[d] * 4; w < offset[d + 1] * 4; ++w) {
      const uint32_t v = mix32(w);
      ++bins[v & (kBins - 1)];
      ++bins[v >> 16 & (kBins - 1)];
    }
    uint32_t ref = 0;
    for (uint32_t c : bins) ref += c * c;
    if (got[d] != ref) {
      std::fprintf(stderr, "document %d: got %u want %u\n", d, got[d], ref);
      return 1;
    }
  }
  std::printf("checksum: %llu\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
