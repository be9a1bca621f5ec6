// SPDX-License-Identifier: Apache-2.0
// 64-tap FIR over a long recording. One block per SM walks over tiles of 4096 outputs, double
// buffered in shared memory with cp.async; a thread keeps 16 outputs in registers and the taps are
// immediate operands from constant memory.
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

__device__ __forceinline__ void cp16(void* dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem_addr(dst)), "l"(src)
               : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

constexpr int kThreads = 256;
constexpr int kTaps = 64;
constexpr int kTile = 4096;
constexpr int kSpan = kTile + kTaps;
constexpr int kGroups = kTile / (kThreads * 4);

__constant__ float c_taps[kTaps];

__device__ __forceinline__ void fetch(float* dst, const float* src) {
  for (int i = threadIdx.x; i < kSpan / 4; i += kThreads) cp16(dst + i * 4, src + i * 4);
  cp_commit();
}

__global__ void __launch_bounds__(kThreads, 1)
    fir_kernel(const float* __restrict__ in, float* __restrict__ out, int tiles) {
  __shared__ __align__(16) float buffer[2][kSpan];
  if (static_cast<int>(blockIdx.x) < tiles)
    fetch(buffer[0], in + static_cast<size_t>(blockIdx.x) * kTile);
  int cur = 0;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, cur ^= 1) {
    const int next = t + gridDim.x;
    cp_wait<0>();
    __syncthreads();
    if (next < tiles) fetch(buffer[cur ^ 1], in + static_cast<size_t>(next) * kTile);

    const float4* x = reinterpret_cast<const float4*>(buffer[cur]);
    float acc[kGroups][4];
    float4 lo[kGroups];
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      acc[g][0] = acc[g][1] = acc[g][2] = acc[g][3] = 0.0f;
      lo[g] = x[g * kThreads + threadIdx.x];
    }
#pragma unroll
    for (int k = 0; k < kTaps; k += 4) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const float4 hi = x[g * kThreads + threadIdx.x + k / 4 + 1];
        const float s[8] = {lo[g].x, lo[g].y, lo[g].z, lo[g].w, hi.x, hi.y, hi.z, hi.w};
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int o = 0; o < 4; ++o) acc[g][o] = fmaf(c_taps[k + j], s[o + j], acc[g][o]);
        lo[g] = hi;
      }
    }
    float4* dst = reinterpret_cast<float4*>(out + static_cast<size_t>(t) * kTile);
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      __stcs(dst + g * kThreads + threadIdx.x,
             make_float4(acc[g][0], acc[g][1], acc[g][2], acc[g][3]));
  }
}

__host__ __device__ inline float sample(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (2.0f / 65536.0f) - 1.0f;
}
__global__ void fill_kernel(float* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = sample(i);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int tiles = 132 * 120;
  const uint32_t n = static_cast<uint32_t>(tiles) * kTile;
  float *in, *out;
  CK(cudaMalloc(&in, (n + kTaps) * sizeof(float)));
  CK(cudaMalloc(&out, n * sizeof(float)));
  fill_kernel<<<2048, 256>>>(in, n + kTaps);
  std::vector<float> taps(kTaps);
  for (int k = 0; k < kTaps; ++k)
    taps[k] = static_cast<float>(0.5 - 0.5 * std::cos(6.283185307 * (k + 0.5) / kTaps)) / kTaps;
  CK(cudaMemcpyToSymbol(c_taps, taps.data(), kTaps * sizeof(float)));
  const double us = time_us([&] { fir_kernel<<<sms, kThreads>>>(in, out, tiles); });

  std::vector<float> got(n);
  CK(cudaMemcpy(got.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float v : got) sum += v;
  for (uint32_t s = 0; s < 500000; ++s) {
    const uint32_t i = mix32(s) % n;
    double ref = 0;
    for (int k = 0; k < kTaps; ++k) ref += static_cast<double>(taps[k]) * sample(i + k);
    if (!(std::fabs(got[i] - ref) <= 1e-5)) {
      std::fprintf(stderr, "sample %u: got %g want %g\n", i, got[i], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
