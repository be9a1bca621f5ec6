// SPDX-License-Identifier: Apache-2.0
// Sum of squared errors between a source and a decoded 8-bit video sequence, and its PSNR.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace quality {

struct SquaredError {
  __device__ static uint32_t add(uint32_t a, uint32_t b, uint32_t acc) {
    const uint32_t d = __vabsdiffu4(a, b);
    return __dp4a(d, d, acc);
  }
};

struct AbsoluteError {
  __device__ static uint32_t add(uint32_t a, uint32_t b, uint32_t acc) {
    return __dp4a(__vabsdiffu4(a, b), 0x01010101u, acc);
  }
};

template <class Metric>
__device__ __forceinline__ uint32_t addVector(const uint4& a, const uint4& b, uint32_t acc) {
  acc = Metric::add(a.x, b.x, acc);
  acc = Metric::add(a.y, b.y, acc);
  acc = Metric::add(a.z, b.z, acc);
  return Metric::add(a.w, b.w, acc);
}

template <class Metric, int THREADS, int UNROLL>
__global__ void __launch_bounds__(THREADS) frameError(const uint4* __restrict__ a, const uint4* __restrict__ b,
                                                      unsigned long long* __restrict__ partial, size_t n) {
  uint32_t acc = 0;
  const size_t chunk = size_t(THREADS) * UNROLL;
  for (size_t base = blockIdx.x * chunk; base < n; base += gridDim.x * chunk) {
    uint4 x[UNROLL], y[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const size_t i = base + u * THREADS + threadIdx.x;
      x[u] = i < n ? __ldcs(a + i) : make_uint4(0, 0, 0, 0);
      y[u] = i < n ? __ldcs(b + i) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) acc = addVector<Metric>(x[u], y[u], acc);
  }
  unsigned long long sum = acc;
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  __shared__ unsigned long long warps[THREADS / 32];
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned long long total = 0;
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) total += warps[w];
    partial[blockIdx.x] = total;
  }
}

__global__ void finish(const unsigned long long* __restrict__ partial, int count, double* __restrict__ psnr,
                       unsigned long long* __restrict__ sse, double pixels) {
  __shared__ unsigned long long warps[32];
  unsigned long long sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < int(blockDim.x / 32); ++w) sum += warps[w];
    *sse = sum;
    *psnr = 10.0 * log10(255.0 * 255.0 * pixels / double(sum));
  }
}

}  // namespace quality

int main() {
  using namespace quality;
  const size_t bytes = size_t(3840) * 2160 * 144, n = bytes / 16;
  std::vector<uint8_t> ha(bytes), hb(bytes);
  uint32_t s = 11;
  for (size_t i = 0; i < bytes; ++i) {
    s = s * 1664525u + 1013904223u;
    ha[i] = uint8_t(s >> 24);
    const int d = int((s >> 16) & 15) - 8, v = ha[i] + d;
    hb[i] = uint8_t(v < 0 ? 0 : v > 255 ? 255 : v);
  }
  unsigned long long want = 0;
  for (size_t i = 0; i < bytes; ++i) { const int d = int(ha[i]) - hb[i]; want += d * d; }

  uint8_t *a, *b;
  unsigned long long *partial, *sse;
  double* psnr;
  constexpr int kThreads = 256;
  const int blocks = 132 * 8;
  CK(cudaMalloc(&a, bytes));
  CK(cudaMalloc(&b, bytes));
  CK(cudaMalloc(&partial, blocks * 8));
  CK(cudaMalloc(&sse, 8));
  CK(cudaMalloc(&psnr, 8));
  CK(cudaMemcpy(a, ha.data(), bytes, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(b, hb.data(), bytes, cudaMemcpyHostToDevice));
  const uint4 *va = reinterpret_cast<const uint4*>(a), *vb = reinterpret_cast<const uint4*>(b);

  auto step = [&] {
    frameError<SquaredError, kThreads, 2><<<blocks, kThreads>>>(va, vb, partial, n);
    finish<<<1, 1024>>>(partial, blocks, psnr, sse, double(bytes));
  };
  frameError<AbsoluteError, kThreads, 2><<<blocks, kThreads>>>(va, vb, partial, n);
  for (int i = 0; i < 5; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 60;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  unsigned long long got;
  double db;
  CK(cudaMemcpy(&got, sse, 8, cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(&db, psnr, 8, cudaMemcpyDeviceToHost));
  if (got != want || std::fabs(db - 10 * std::log10(65025.0 * bytes / double(want))) > 1e-6) {
    fprintf(stderr, "mismatch: %llu, not %llu\n", got, want);
    return 1;
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
