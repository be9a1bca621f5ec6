// SPDX-License-Identifier: Apache-2.0
// RMS normalisation of very long rows (32768 values): a cluster of four blocks holds a row in
// registers, the partial sums meet through distributed shared memory.
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

__device__ __forceinline__ uint32_t smem_addr(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::
                   : "memory");
}
__device__ __forceinline__ float peer_load(const float* p, uint32_t rank) {
  uint32_t a;
  float v;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(smem_addr(p)), "r"(rank));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(a) : "memory");
  return v;
}

constexpr int kCluster = 4;
constexpr int kThreads = 512;
constexpr int kVectors = 4;
constexpr int kRow = kCluster * kThreads * kVectors * 4;

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 3)
    norm_kernel(const float4* __restrict__ in, const float4* __restrict__ gain,
                float4* __restrict__ out) {
  extern __shared__ __align__(128) unsigned char raw[];
  float* partial = reinterpret_cast<float*>(raw);  // 16 warps, then the block's sum
  const int row = blockIdx.x / kCluster, rank = blockIdx.x % kCluster;
  const int first = rank * kThreads * kVectors + threadIdx.x;
  const float4* src = in + static_cast<size_t>(row) * (kRow / 4) + first;
  float4 v[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) v[i] = __ldcs(src + i * kThreads);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kVectors; ++i)
    sum = fmaf(v[i].x, v[i].x, fmaf(v[i].y, v[i].y, fmaf(v[i].z, v[i].z, fmaf(v[i].w, v[i].w, sum))));
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < kThreads / 32 ? partial[threadIdx.x] : 0.0f;
#pragma unroll
    for (int o = 8; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (threadIdx.x == 0) partial[kThreads / 32] = sum;
  }
  cluster_sync();
  float total = 0.0f;
#pragma unroll
  for (int r = 0; r < kCluster; ++r) total += peer_load(partial + kThreads / 32, r);
  cluster_sync();
  const float inv = rsqrtf(fmaf(total, 1.0f / kRow, 1e-6f));
  float4* dst = out + static_cast<size_t>(row) * (kRow / 4) + first;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const float4 g = __ldg(gain + first + i * kThreads);
    __stcs(dst + i * kThreads, make_float4(v[i].x * inv * g.x, v[i].y * inv * g.y,
                                           v[i].z * inv * g.z, v[i].w * inv * g.w));
  }
}

__host__ __device__ inline float value(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (2.0f / 65536.0f) - 1.0f;
}
__global__ void fill_kernel(float* p, uint32_t n, uint32_t salt) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = value(i + salt);
}

int main() {
  const uint32_t rows = 3168, salt = 0x90000000u;
  const uint32_t n = rows * kRow;
  float *in, *gain, *out;
  CK(cudaMalloc(&in, static_cast<size_t>(n) * sizeof(float)));
  CK(cudaMalloc(&out, static_cast<size_t>(n) * sizeof(float)));
  CK(cudaMalloc(&gain, kRow * sizeof(float)));
  fill_kernel<<<2048, 256>>>(in, n, 0);
  fill_kernel<<<64, 256>>>(gain, kRow, salt);
  const double us = time_us([&] {
    norm_kernel<<<rows * kCluster, kThreads, 128>>>(reinterpret_cast<const float4*>(in),
                                                    reinterpret_cast<const float4*>(gain),
                                                    reinterpret_cast<float4*>(out));
  });

  std::vector<float> got(n);
  CK(cudaMemcpy(got.data(), out, static_cast<size_t>(n) * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (uint32_t row = 0; row < rows; row += 5) {
    double square = 0;
    for (uint32_t c = 0; c < kRow; ++c) square += value(row * kRow + c) * value(row * kRow + c);
    const double inv = 1.0 / std::sqrt(square / kRow + 1e-6);
    for (uint32_t c = 0; c < kRow; ++c) {
      const double ref = value(row * kRow + c) * inv * value(salt + c), g = got[row * kRow + c];
      sum += g;
      if (!(std::fabs(g - ref) <= 1e-3)) {
        std::fprintf(stderr, "row %u column %u: got %g want %g\n", row, c, g, ref);
        return 1;
      }
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
