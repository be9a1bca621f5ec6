// SPDX-License-Identifier: Apache-2.0
// Assignment step of k-means in fp32: every point (dim 64) gets its nearest centroid.
// 128 points x 128 centroids per step, 8x8 distances a thread, operands in transposed shared
// tiles; the running minimum is kept over the centroid blocks.
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

constexpr int kDim = 64;
constexpr int kTile = 128;
constexpr int kThreads = 256;
constexpr int kDepth = 8;  // dimensions in a centroid slab
constexpr int kPitch = kTile + 4;

struct Shared {
  float points[kDim][kPitch];
  float cents[2][kDepth][kPitch];
};

__device__ __forceinline__ void load8(float (&r)[8], const float* row, int at) {
  const float4 a = *reinterpret_cast<const float4*>(row + at * 4);
  const float4 b = *reinterpret_cast<const float4*>(row + 64 + at * 4);
  r[0] = a.x, r[1] = a.y, r[2] = a.z, r[3] = a.w;
  r[4] = b.x, r[5] = b.y, r[6] = b.z, r[7] = b.w;
}
__device__ __forceinline__ int spread(int at, int i) { return (i >> 2) * 64 + at * 4 + (i & 3); }

// A slab holds kDepth dimensions of kTile centroids; one float4 a thread.
__device__ __forceinline__ float4 fetch_slab(const float* __restrict__ cents, int slab) {
  const int block = slab / (kDim / kDepth), d0 = (slab % (kDim / kDepth)) * kDepth;
  const int c = threadIdx.x >> 1, d = (threadIdx.x & 1) * 4;
  return __ldg(reinterpret_cast<const float4*>(
      cents + static_cast<size_t>(block * kTile + c) * kDim + d0 + d));
}
__device__ __forceinline__ void put_slab(float (&dst)[kDepth][kPitch], float4 v) {
  const int c = threadIdx.x >> 1, d = (threadIdx.x & 1) * 4;
  dst[d + 0][c] = v.x;
  dst[d + 1][c] = v.y;
  dst[d + 2][c] = v.z;
  dst[d + 3][c] = v.w;
}

__global__ void __launch_bounds__(kThreads, 2)
    assign_kernel(const float* __restrict__ points, const float* __restrict__ cents,
                  int cent_blocks, int* __restrict__ label, float* __restrict__ dist) {
  extern __shared__ __align__(16) unsigned char raw[];
  Shared& sm = *reinterpret_cast<Shared*>(raw);
  const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
  const float* mine = points + static_cast<size_t>(blockIdx.x) * kTile * kDim;
#pragma unroll
  for (int i = 0; i < kTile * kDim / 4 / kThreads; ++i) {
    const int v = threadIdx.x + i * kThreads;
    const int p = v / (kDim / 4), d = (v % (kDim / 4)) * 4;
    const float4 f = __ldcs(reinterpret_cast<const float4*>(mine + p * kDim + d));
    sm.points[d + 0][p] = f.x;
    sm.points[d + 1][p] = f.y;
    sm.points[d + 2][p] = f.z;
    sm.points[d + 3][p] = f.w;
  }
  float4 next = fetch_slab(cents, 0);
  put_slab(sm.cents[0], next);
  __syncthreads();

  float best[8];
  int who[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    best[i] = INFINITY;
    who[i] = 0;
  }
  constexpr int kSlabs = kDim / kDepth;
  for (int cb = 0; cb < cent_blocks; ++cb) {
    float acc[8][8] = {};
#pragma unroll 1
    for (int s = 0; s < kSlabs; ++s) {
      const int slab = cb * kSlabs + s;
      const bool more = slab + 1 < cent_blocks * kSlabs;
      if (more) next = fetch_slab(cents, slab + 1);
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        float a[8], b[8];
        load8(a, sm.points[s * kDepth + d], ty);
        load8(b, sm.cents[slab & 1][d], tx);
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            const float t = a[i] - b[j];
            acc[i][j] = fmaf(t, t, acc[i][j]);
          }
      }
      if (more) put_slab(sm.cents[(slab + 1) & 1], next);
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j)
        if (acc[i][j] < best[i]) {
          best[i] = acc[i][j];
          who[i] = cb * kTile + spread(tx, j);
        }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int d = 8; d > 0; d >>= 1) {
      const float o = __shfl_xor_sync(0xffffffffu, best[i], d);
      const int w = __shfl_xor_sync(0xffffffffu, who[i], d);
      if (o < best[i] || (o == best[i] && w < who[i])) {
        best[i] = o;
        who[i] = w;
      }
    }
    if (tx == 0) {
      const size_t p = static_cast<size_t>(blockIdx.x) * kTile + spread(ty, i);
      label[p] = who[i];
      dist[p] = best[i];
    }
  }
}

__host__ __device__ inline float coord(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (1.0f / 65536.0f);
}
__global__ void fill_kernel(float* p, uint32_t n, uint32_t seed) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = coord(i + seed);
}

int main() {
  const int points = 132 * 16 * kTile, cents = 512;
  const uint32_t seed_c = 0x50000000u;
  float *p, *c, *dist;
  int* label;
  CK(cudaMalloc(&p, sizeof(float) * points * kDim));
  CK(cudaMalloc(&c, sizeof(float) * cents * kDim));
  CK(cudaMalloc(&dist, sizeof(float) * points));
  CK(cudaMalloc(&label, sizeof(int) * points));
  fill_kernel<<<1024, 256>>>(p, points * kDim, 0);
  fill_kernel<<<64, 256>>>(c, cents * kDim, seed_c);
  CK(cudaFuncSetAttribute(assign_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          static_cast<int>(sizeof(Shared))));
  const double us = time_us([&] {
    assign_kernel<<<points / kTile, kThreads, sizeof(Shared)>>>(p, c, cents / kTile, label, dist);
  });

  std::vector<int> got(points);
  std::vector<float> gd(points);
  CK(cudaMemcpy(got.data(), label, sizeof(int) * points, cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(gd.data(), dist, sizeof(float) * points, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float v : gd) sum += v;
  std::vector<float> hc(cents * kDim);
  for (int i = 0; i < cents * kDim; ++i) hc[i] = coord(i + seed_c);
  for (int s = 0; s < 4000; ++s) {
    const int i = static_cast<int>(mix32(s) % points);
    double ref = 1e30, mine = 1e30;
    for (int k = 0; k < cents; ++k) {
      double d2 = 0;
      for (int d = 0; d < kDim; ++d) {
        const double t = static_cast<double>(coord(i * kDim + d)) - hc[k * kDim + d];
        d2 += t * t;
      }
      ref = std::min(ref, d2);
      if (k == got[i]) mine = d2;
    }
    if (!(std::fabs(gd[i] - ref) < 1e-3 && std::fabs(mine - ref) < 1e-3)) {
      std::fprintf(stderr, "point %d: got %g (%d: %g) want %g\n", i, gd[i], got[i], mine, ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
