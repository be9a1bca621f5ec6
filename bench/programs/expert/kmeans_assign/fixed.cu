// SPDX-License-Identifier: Apache-2.0
// Assignment step of k-means: nearest of 512 centroids for every 64-dimensional point. A block
// takes 128 points and walks over the centroids 128 at a time with 8x8 register tiles, the next
// slice of both operands being fetched into registers while the current one is multiplied.
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

constexpr int kDim = 64;
constexpr int kTile = 128;
constexpr int kSlice = 8;
constexpr int kThreads = 256;
constexpr int kPitch = kTile + 4;

__global__ void __launch_bounds__(kThreads, 2)
    assign_kernel(const float* __restrict__ points, const float* __restrict__ centroids,
                  const float* __restrict__ half_norm, int* __restrict__ label, int clusters) {
  __shared__ __align__(16) float ps[kSlice][kPitch];
  __shared__ __align__(16) float cs[kSlice][kPitch];
  const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
  const int lr = threadIdx.x >> 1, lc = (threadIdx.x & 1) * 4;
  const float* psrc = points + (static_cast<size_t>(blockIdx.x) * kTile + lr) * kDim + lc;

  float best[8];
  int who[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    best[i] = 3.0e38f;
    who[i] = 0;
  }
  for (int c0 = 0; c0 < clusters; c0 += kTile) {
    const float* csrc = centroids + static_cast<size_t>(c0 + lr) * kDim + lc;
    float acc[8][8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;
    float4 p0 = *reinterpret_cast<const float4*>(psrc);
    float4 q0 = *reinterpret_cast<const float4*>(csrc);
    for (int k0 = 0; k0 < kDim; k0 += kSlice) {
      __syncthreads();
      ps[lc + 0][lr] = p0.x, ps[lc + 1][lr] = p0.y, ps[lc + 2][lr] = p0.z, ps[lc + 3][lr] = p0.w;
      cs[lc + 0][lr] = q0.x, cs[lc + 1][lr] = q0.y, cs[lc + 2][lr] = q0.z, cs[lc + 3][lr] = q0.w;
      __syncthreads();
      if (k0 + kSlice < kDim) {
        p0 = *reinterpret_cast<const float4*>(psrc + k0 + kSlice);
        q0 = *reinterpret_cast<const float4*>(csrc + k0 + kSlice);
      }
#pragma unroll 4
      for (int k = 0; k < kSlice; ++k) {
        const float4 a0 = *reinterpret_cast<const float4*>(&ps[k][ty * 4]);
        const float4 a1 = *reinterpret_cast<const float4*>(&ps[k][64 + ty * 4]);
        const float4 b0 = *reinterpret_cast<const float4*>(&cs[k][tx * 4]);
        const float4 b1 = *reinterpret_cast<const float4*>(&cs[k][64 + tx * 4]);
        const float a[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
        const float b[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
          for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
      }
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int c = c0 + (j >> 2) * 64 + tx * 4 + (j & 3);
      const float norm = half_norm[c];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float d = norm - acc[i][j];
        if (d < best[i]) {
          best[i] = d;
          who[i] = c;
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int o = 8; o > 0; o >>= 1) {
      const float d = __shfl_xor_sync(0xffffffffu, best[i], o);
      const int w = __shfl_xor_sync(0xffffffffu, who[i], o);
      if (d < best[i] || (d == best[i] && w < who[i])) {
        best[i] = d;
        who[i] = w;
      }
    }
    if (tx == 0) label[blockIdx.x * kTile + (i >> 2) * 64 + ty * 4 + (i & 3)] = who[i];
  }
}

__host__ __device__ inline float coordinate(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (2.0f / 65536.0f) - 1.0f;
}
__global__ void fill_kernel(float* p, uint32_t n, uint32_t salt) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = coordinate(i + salt);
}

int main() {
  const uint32_t n = 1 << 18, clusters = 512, salt = 0x80000000u;
  float *points, *centroids, *norms;
  int* label;
  CK(cudaMalloc(&points, static_cast<size_t>(n) * kDim * sizeof(float)));
  CK(cudaMalloc(&centroids, clusters * kDim * sizeof(float)));
  CK(cudaMalloc(&norms, clusters * sizeof(float)));
  CK(cudaMalloc(&label, n * sizeof(int)));
  fill_kernel<<<1024, 256>>>(points, n * kDim, 0);
  fill_kernel<<<64, 256>>>(centroids, clusters * kDim, salt);
  std::vector<float> half(clusters);
  for (uint32_t c = 0; c < clusters; ++c) {
    double s = 0;
    for (int d = 0; d < kDim; ++d) s += 0.5 * coordinate(salt + c * kDim + d) * coordinate(salt + c * kDim + d);
    half[c] = static_cast<float>(s);
  }
  CK(cudaMemcpy(norms, half.data(), clusters * sizeof(float), cudaMemcpyHostToDevice));
  const double us = time_us([&] {
    assign_kernel<<<n / kTile, kThreads>>>(points, centroids, norms, label, clusters);
  });

  std::vector<int> got(n);
  CK(cudaMemcpy(got.data(), label, n * sizeof(int), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (int v : got) sum += v;
  for (uint32_t s = 0; s < 3000; ++s) {
    const uint32_t p = mix32(s) % n;
    if (got[p] < 0 || got[p] >= static_cast<int>(clusters)) return 1;
    double low = 1e30, mine = 0;
    for (uint32_t c = 0; c < clusters; ++c) {
      double d = half[c];
      for (int k = 0; k < kDim; ++k)
        d -= static_cast<double>(coordinate(p * kDim + k)) * coordinate(salt + c * kDim + k);
      low = std::min(low, d);
      if (static_cast<int>(c) == got[p]) mine = d;
    }
    if (!(mine <= low + 1e-3)) {
      std::fprintf(stderr, "point %u: label %d at %g, nearest %g\n", p, got[p], mine, low);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
