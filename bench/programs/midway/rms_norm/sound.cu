// SPDX-License-Identifier: Apache-2.0
// RMSNorm over rows of 8192 bf16 values: one block a row, the row stays in registers.
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

constexpr int kHidden = 8192;
constexpr int kThreads = 256;
constexpr int kVecs = kHidden / 8 / kThreads;

__device__ __forceinline__ float lo(uint32_t x) { return __uint_as_float(x << 16); }
__device__ __forceinline__ float hi(uint32_t x) { return __uint_as_float(x & 0xffff0000u); }
__device__ __forceinline__ float square2(uint32_t x, float acc) {
  return fmaf(hi(x), hi(x), fmaf(lo(x), lo(x), acc));
}
__device__ __forceinline__ uint32_t scale2(uint32_t x, uint32_t w, float r) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(lo(x) * r * lo(w), hi(x) * r * hi(w));
  return *reinterpret_cast<const uint32_t*>(&v);
}

__global__ void __launch_bounds__(kThreads)
    norm_kernel(const uint4* __restrict__ x, const uint4* __restrict__ weight,
                uint4* __restrict__ y, float eps) {
  __shared__ float part[kThreads / 32];
  const size_t base = static_cast<size_t>(blockIdx.x) * (kHidden / 8);
  uint4 v[kVecs];
#pragma unroll
  for (int i = 0; i < kVecs; ++i) v[i] = __ldcs(x + base + threadIdx.x + i * kThreads);
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < kVecs; ++i)
    s = square2(v[i].w, square2(v[i].z, square2(v[i].y, square2(v[i].x, s))));
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
  __syncthreads();
  s = 0.f;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) s += part[w];
  const float r = rsqrtf(s * (1.0f / kHidden) + eps);
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    const uint4 w = __ldg(weight + threadIdx.x + i * kThreads);
    __stcs(y + base + threadIdx.x + i * kThreads,
           make_uint4(scale2(v[i].x, w.x, r), scale2(v[i].y, w.y, r), scale2(v[i].z, w.z, r),
                      scale2(v[i].w, w.w, r)));
  }
}

__host__ __device__ inline float value(uint32_t i) {
  return static_cast<float>(static_cast<int>(mix32(i) & 255) - 128) * (1.0f / 64.0f);
}
__global__ void fill_kernel(__nv_bfloat16* p, uint32_t n, uint32_t seed) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = __float2bfloat16(value(i + seed));
}

int main() {
  const int rows = 16384;
  const uint32_t n = static_cast<uint32_t>(rows) * kHidden, seed = 0x30000000u;
  __nv_bfloat16 *x, *w, *y;
  CK(cudaMalloc(&x, n * sizeof(*x)));
  CK(cudaMalloc(&y, n * sizeof(*y)));
  CK(cudaMalloc(&w, kHidden * sizeof(*w)));
  fill_kernel<<<2048, 256>>>(x, n, 0);
  fill_kernel<<<8, 256>>>(w, kHidden, seed);
  const double us = time_us([&] {
    norm_kernel<<<rows, kThreads>>>(reinterpret_cast<const uint4*>(x),
                                    reinterpret_cast<const uint4*>(w),
                                    reinterpret_cast<uint4*>(y), 1e-5f);
  });
  std::vector<__nv_bfloat16> got(kHidden);
  double sum = 0;
  for (int s = 0; s < 200; ++s) {
    const uint32_t row = s == 0 ? rows - 1 : mix32(s) % rows;
    CK(cudaMemcpy(got.data(), y + static_cast<size_t>(row) * kHidden, kHidden * sizeof(*y),
                  cudaMemcpyDeviceToHost));
    double sq = 0;
    for (int c = 0; c < kHidden; ++c) {
      const double v = value(row * kHidden + c);
      sq += v * v;
    }
    const double r = 1.0 / std::sqrt(sq / kHidden + 1e-5);
    for (int c = 0; c < kHidden; ++c) {
      const double ref = value(row * kHidden + c) * r * value(seed + c);
      const double g = __bfloat162float(got[c]);
      sum += std::fabs(g);
      if (!(std::fabs(g - ref) <= 0.005 * std::fabs(ref) + 1e-5)) {
        std::fprintf(stderr, "row %u col %d: got %g want %g\n", row, c, g, ref);
        return 1;
      }
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
