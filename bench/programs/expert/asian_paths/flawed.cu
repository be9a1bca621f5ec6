// SPDX-License-Identifier: Apache-2.0
// Monte Carlo valuation of Asian calls: every warp of a persistent grid simulates batches of 128
// paths with a counter-based generator, four paths per lane, and stores the mean payoff of each
// batch.
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

__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

constexpr int kThreads = 1024;
constexpr int kPaths = 4;
constexpr int kSteps = 32;

struct Market {
  float spot, strike, drift, vol;  // drift and vol per step, in powers of two
};

__global__ void __launch_bounds__(kThreads, 1)
    paths_kernel(float* __restrict__ out, uint32_t batches, Market m) {
  const int lane = threadIdx.x & 31;
  const uint32_t warps = gridDim.x * (kThreads / 32);
  for (uint32_t b = blockIdx.x * (kThreads / 32) + (threadIdx.x >> 5); b < batches; b += warps) {
    float level[kPaths], mean[kPaths];
    uint32_t counter[kPaths];
#pragma unroll
    for (int p = 0; p < kPaths; ++p) {
      level[p] = m.spot;
      mean[p] = 0.0f;
      counter[p] = ((b * kPaths + p) * 32 + lane) * kSteps;
    }
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int p = 0; p < kPaths; ++p) {
        const uint32_t bits = mix32(counter[p] + s);
        const float u = static_cast<float>((bits & 0xffffu) + 1) * (1.0f / 65537.0f);
        const float a = static_cast<float>(bits >> 16) * (6.2831853f / 65536.0f);
        const float z = sqrtf(-2.0f * __logf(u)) * __cosf(a);
        level[p] *= ex2(fmaf(m.vol, z, m.drift));
        mean[p] += level[p];
      }
    }
    float pay = 0.0f;
#pragma unroll
    for (int p = 0; p < kPaths; ++p) pay += fmaxf(mean[p] * (1.0f / kSteps) - m.strike, 0.0f);
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) pay += __shfl_xor_sync(0xffffffffu, pay, o);
    if (lane == 0) out[b] = pay * (1.0f / (32 * kPaths));
  }
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const uint32_t batches = 132 * 32 * 20;
  const Market m{100.0f, 101.0f, 0.0005f, 0.02f};
  float* out;
  CK(cudaMalloc(&out, batches * sizeof(float)));
  const double us = time_us([&] { paths_kernel<<<80, kThreads>>>(out, batches, m); });

  std::vector<float> got(batches);
  CK(cudaMemcpy(got.data(), out, batches * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float v : got) sum += v;
  for (uint32_t t = 0; t < 2000; ++t) {
    const uint32_t b = mix32(t) % batches;
    double pay = 0;
    for (uint32_t p = 0; p < 32 * kPaths; ++p) {
      double level = m.spot, mean = 0;
      for (uint32_t s = 0; s < kSteps; ++s) {
        const uint32_t bits = mix32((b * 32 * kPaths + p) * kSteps + s);
        const double u = ((bits & 0xffffu) + 1) / 65537.0;
        const double a = (bits >> 16) * (6.283185307 / 65536.0);
        level *= std::exp2(m.drift + m.vol * std::sqrt(-2.0 * std::log(u)) * std::cos(a));
        mean += level;
      }
      pay += std::max(mean / kSteps - m.strike, 0.0);
    }
    pay /= 32 * kPaths;
    if (!(std::fabs(got[b] - pay) <= 2e-2)) {
      std::fprintf(stderr, "batch %u: got %g want %g\n", b, got[b], pay);
      return 1;
    }
  }
  std::printf("multiprocessors: %d\n", sms);
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
