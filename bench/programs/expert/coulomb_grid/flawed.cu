// SPDX-License-Identifier: Apache-2.0
// Electrostatic potential of a cloud of charges on a regular grid (direct summation). A thread
// owns four grid points of one line; charges pass through shared memory in tiles.
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

constexpr int kThreads = 128;
constexpr int kPoints = 4;
constexpr int kTile = 256;

__global__ void __launch_bounds__(kThreads)
    potential_kernel(const float4* __restrict__ charges, float* __restrict__ out, int count,
                     int ny, float h) {
  __shared__ float4 tile[kTile];
  constexpr int nx = kThreads * kPoints;
  const int y = blockIdx.x % ny, z = blockIdx.x / ny;
  const float py = h * static_cast<float>(y), pz = h * static_cast<float>(z);
  float px[kPoints], sum[kPoints];
#pragma unroll
  for (int p = 0; p < kPoints; ++p) {
    px[p] = h * static_cast<float>(threadIdx.x * kPoints + p);
    sum[p] = 0.0f;
  }
  for (int base = 0; base < count; base += kTile) {
    __syncthreads();
    for (int i = threadIdx.x; i < kTile; i += kThreads) tile[i] = charges[base + i];
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < kTile; ++i) {
      const float4 c = tile[i];
      const float dy = py - c.y, dz = pz - c.z;
      const float yz = fmaf(dy, dy, dz * dz);
#pragma unroll
      for (int p = 0; p < kPoints; ++p) {
        const float dx = px[p] - c.x;
        const float r2 = fmaf(dx, dx, yz) + 0.0025;
        sum[p] = fmaf(c.w, rsqrtf(r2), sum[p]);
      }
    }
  }
  float4 v = make_float4(sum[0], sum[1], sum[2], sum[3]);
  reinterpret_cast<float4*>(out + static_cast<size_t>(blockIdx.x) * nx)[threadIdx.x] = v;
}

static float coordinate(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (32.0f / 65536.0f);
}

int main() {
  const int nx = kThreads * kPoints, ny = 128, nz = 64, count = 1024;
  const float h = 0.0625f;
  const size_t n = static_cast<size_t>(nx) * ny * nz;
  std::vector<float4> host(count);
  for (int i = 0; i < count; ++i)
    host[i] = make_float4(coordinate(4 * i), coordinate(4 * i + 1), coordinate(4 * i + 2),
                          coordinate(4 * i + 3) * 0.05f);
  float4* charges;
  float* out;
  CK(cudaMalloc(&charges, count * sizeof(float4)));
  CK(cudaMalloc(&out, n * sizeof(float)));
  CK(cudaMemcpy(charges, host.data(), count * sizeof(float4), cudaMemcpyHostToDevice));
  const double us =
      time_us([&] { potential_kernel<<<ny * nz, kThreads>>>(charges, out, count, ny, h); });

  std::vector<float> got(n);
  CK(cudaMemcpy(got.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float v : got) sum += v;
  for (uint32_t s = 0; s < 20000; ++s) {
    const uint32_t i = mix32(s) % n;
    const double x = h * (i % nx), y = h * (i / nx % ny), z = h * (i / nx / ny);
    double ref = 0;
    for (const float4& c : host) {
      const double dx = x - c.x, dy = y - c.y, dz = z - c.z;
      ref += c.w / std::sqrt(dx * dx + dy * dy + dz * dz + 0.0025);
    }
    if (!(std::fabs(got[i] - ref) <= 1e-3 * std::fabs(ref))) {
      std::fprintf(stderr, "point %u: got %g want %g\n", i, got[i], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
