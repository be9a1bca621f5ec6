// SPDX-License-Identifier: Apache-2.0
// All-pairs gravitational accelerations (softened), fp32. Sources are staged in shared memory
// in double-buffered tiles; every thread accumulates four targets.
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

constexpr int kThreads = 256;
constexpr int kPer = 4;
constexpr int kTile = 256;

__device__ __forceinline__ float rsqrt_fast(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

__global__ void __launch_bounds__(kThreads, 3)
    accel_kernel(const float4* __restrict__ bodies, int n, int per_split, float eps2,
                 float4* __restrict__ part) {
  __shared__ float4 src[2][kTile];
  float4 p[kPer];
  float3 a[kPer];
  const int first = blockIdx.x * kThreads * kPer + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    p[i] = __ldg(bodies + first + i * kThreads);
    a[i] = make_float3(0.f, 0.f, 0.f);
  }
  const int j0 = blockIdx.y * per_split, tiles = per_split / kTile;
  src[0][threadIdx.x] = __ldg(bodies + j0 + threadIdx.x);
  __syncthreads();
  for (int t = 0; t < tiles; ++t) {
    float4 next = make_float4(0.f, 0.f, 0.f, 0.f);
    if (t + 1 < tiles) next = __ldg(bodies + j0 + (t + 1) * kTile + threadIdx.x);
    const float4* s = src[t & 1];
#pragma unroll 8
    for (int j = 0; j < kTile; ++j) {
      const float4 q = s[j];
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        const float dx = q.x - p[i].x, dy = q.y - p[i].y, dz = q.z - p[i].z;
        const float r2 = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, eps2)));
        const float r = rsqrt_fast(r2);
        const float f = q.w * r * r * r;
        a[i].x = fmaf(f, dx, a[i].x);
        a[i].y = fmaf(f, dy, a[i].y);
        a[i].z = fmaf(f, dz, a[i].z);
      }
    }
    src[(t + 1) & 1][threadIdx.x] = next;
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i)
    part[static_cast<size_t>(blockIdx.y) * n + first + i * kThreads] =
        make_float4(a[i].x, a[i].y, a[i].z, 0.f);
}

__global__ void sum_kernel(const float4* __restrict__ part, int n, int splits,
                           float4* __restrict__ acc) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 s = part[i];
  for (int k = 1; k < splits; ++k) {
    const float4 v = part[static_cast<size_t>(k) * n + i];
    s.x += v.x;
    s.y += v.y;
    s.z += v.z;
  }
  acc[i] = s;
}

int main() {
  const int n = 33 * kThreads * kPer, splits = 12, per_split = n / splits;
  const float eps2 = 1e-3f;
  static_assert(33 * 1024 / 12 % kTile == 0, "split");
  std::vector<float4> h(n);
  for (int i = 0; i < n; ++i) {
    auto u = [&](int k) { return static_cast<float>(mix32(i * 4 + k) & 0xffff) / 65536.0f; };
    h[i] = make_float4(u(0), u(1), u(2), 0.5f + u(3));
  }
  float4 *bodies, *part, *acc;
  CK(cudaMalloc(&bodies, n * sizeof(float4)));
  CK(cudaMalloc(&part, static_cast<size_t>(n) * splits * sizeof(float4)));
  CK(cudaMalloc(&acc, n * sizeof(float4)));
  CK(cudaMemcpy(bodies, h.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
  const double us = time_us([&] {
    accel_kernel<<<dim3(n / (kThreads * kPer), splits), kThreads>>>(bodies, n, per_split, eps2,
                                                                    part);
    sum_kernel<<<n / 256, 256>>>(part, n, splits, acc);
  });
  std::vector<float4> got(n);
  CK(cudaMemcpy(got.data(), acc, n * sizeof(float4), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (const float4& v : got) sum += std::fabs(v.x) + std::fabs(v.y) + std::fabs(v.z);
  for (int s = 0; s < 200; ++s) {
    const int i = static_cast<int>(mix32(s) % n);
    double x = 0, y = 0, z = 0;
    for (int j = 0; j < n; ++j) {
      const double dx = h[j].x - h[i].x, dy = h[j].y - h[i].y, dz = h[j].z - h[i].z;
      const double r2 = dx * dx + dy * dy + dz * dz + eps2;
      const double f = h[j].w / (r2 * std::sqrt(r2));
      x += f * dx;
      y += f * dy;
      z += f * dz;
    }
    const double err = std::fabs(got[i].x - x) + std::fabs(got[i].y - y) + std::fabs(got[i].z - z);
    if (!(err <= 1e-3 * (std::fabs(x) + std::fabs(y) + std::fabs(z)) + 2.0)) {
      std::fprintf(stderr, "body %d: got %g %g %g want %g %g %g\n", i, got[i].x, got[i].y,
                   got[i].z, x, y, z);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
