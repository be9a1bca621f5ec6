// SPDX-License-Identifier: Apache-2.0
// Out-of-place transposition of an fp32 matrix in 64x64 tiles.
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

constexpr int kTile = 64;
constexpr int kThreads = 256;

// Element (column c of the source, row r) of the transposed tile.
__device__ __forceinline__ int place(int c, int r) {
  return c * kTile + (((r >> 2) ^ (c >> 2)) & 15) * 4 + (r & 3);
}

__global__ void __launch_bounds__(kThreads, 6)
    transpose_kernel(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  __shared__ __align__(16) float tile[kTile * kTile];
  const int c0 = blockIdx.x * kTile, r0 = blockIdx.y * kTile;
  // A thread owns a 4x4 patch: lanes run over eight column groups and four row groups.
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int cg = (lane & 7) + (warp & 1) * 8, rg = (lane >> 3) + (warp >> 1) * 4;
  float4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v[i] = __ldcs(reinterpret_cast<const float4*>(
        in + static_cast<size_t>(r0 + rg * 4 + i) * cols + c0 + cg * 4));
  *reinterpret_cast<float4*>(tile + place(cg * 4 + 0, rg * 4)) =
      make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
  *reinterpret_cast<float4*>(tile + place(cg * 4 + 1, rg * 4)) =
      make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
  *reinterpret_cast<float4*>(tile + place(cg * 4 + 2, rg * 4)) =
      make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
  *reinterpret_cast<float4*>(tile + place(cg * 4 + 3, rg * 4)) =
      make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int k = threadIdx.x + i * kThreads;
    const int c = k >> 4, g = k & 15;
    __stcs(reinterpret_cast<float4*>(out + static_cast<size_t>(c0 + c) * rows + r0 + g * 4),
           *reinterpret_cast<const float4*>(tile + place(c, g * 4)));
  }
}

__host__ __device__ inline float value(uint32_t i) {
  return static_cast<float>(mix32(i) >> 8);
}
__global__ void fill_kernel(float* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = value(i);
}

int main() {
  const int rows = 8192, cols = 12288;
  const uint32_t n = static_cast<uint32_t>(rows) * cols;
  float *in, *out;
  CK(cudaMalloc(&in, n * sizeof(float)));
  CK(cudaMalloc(&out, n * sizeof(float)));
  fill_kernel<<<2048, 256>>>(in, n);
  const dim3 grid(cols / kTile, rows / kTile);
  const double us = time_us([&] { transpose_kernel<<<grid, kThreads>>>(in, out, rows, cols); });
  std::vector<float> got(n);
  CK(cudaMemcpy(got.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t c = i / rows, r = i % rows;
    sum += got[i] * static_cast<double>(i & 3);
    if (got[i] != value(r * cols + c)) {
      std::fprintf(stderr, "row %u col %u differs\n", r, c);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
