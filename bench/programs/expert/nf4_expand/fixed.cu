// SPDX-License-Identifier: Apache-2.0
// Expansion of 4-bit normal-float weights to bf16: a scale per 64 weights, eight weights per
// thread and step, two steps in flight.
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

constexpr int kThreads = 256;
constexpr int kBlock = 64;
constexpr int kSteps = 2;

__constant__ float c_code[16];

__device__ __forceinline__ uint32_t pack_bf16(float lo, float hi) {
  uint32_t a = __float_as_uint(lo), b = __float_as_uint(hi);
  a += 0x7fff + ((a >> 16) & 1);
  b += 0x7fff + ((b >> 16) & 1);
  return (a >> 16) | (b & 0xffff0000u);
}

__global__ void __launch_bounds__(kThreads)
    expand_kernel(const uint32_t* __restrict__ packed, const float* __restrict__ scales,
                  uint4* __restrict__ out, uint32_t words) {
  __shared__ float code[16];
  if (threadIdx.x < 16) code[threadIdx.x] = c_code[threadIdx.x];
  __syncthreads();
  const uint32_t stride = gridDim.x * kThreads * kSteps;
  for (uint32_t base = blockIdx.x * kThreads * kSteps + threadIdx.x; base < words; base += stride) {
    uint32_t w[kSteps];
    float s[kSteps];
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      w[k] = __ldcs(packed + base + k * kThreads);
      s[k] = __ldg(scales + (base + k * kThreads) / (kBlock / 8));
    }
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      float f[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) f[e] = code[(w[k] >> (4 * e)) & 15] * s[k];
      __stcs(out + base + k * kThreads,
             make_uint4(pack_bf16(f[0], f[1]), pack_bf16(f[2], f[3]), pack_bf16(f[4], f[5]),
                        pack_bf16(f[6], f[7])));
    }
  }
}

__host__ __device__ inline float scale_of(uint32_t b) {
  return 0.001f * static_cast<float>(1 + (mix32(b) & 63));
}
__global__ void fill_kernel(uint32_t* p, float* s, uint32_t words) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
    p[i] = mix32(i ^ 0x13579bdfu);
    if (i % (kBlock / 8) == 0) s[i / (kBlock / 8)] = scale_of(i / (kBlock / 8));
  }
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const uint32_t words = 24u << 20;
  const float code[16] = {-1.0f,       -0.6961928f, -0.5250731f, -0.3949175f, -0.2844414f, -0.1847734f,
                          -0.0910500f, 0.0f,        0.0795803f,  0.1609302f,  0.2461123f,  0.3379152f,
                          0.4407098f,  0.5626170f,  0.7229568f,  1.0f};
  uint32_t *packed, *out;
  float* scales;
  CK(cudaMalloc(&packed, words * sizeof(uint32_t)));
  CK(cudaMalloc(&out, static_cast<size_t>(words) * 16));
  CK(cudaMalloc(&scales, words / (kBlock / 8) * sizeof(float)));
  CK(cudaMemcpyToSymbol(c_code, code, sizeof(code)));
  fill_kernel<<<2048, 256>>>(packed, scales, words);
  const double us = time_us([&] {
    expand_kernel<<<sms * 8, kThreads>>>(packed, scales, reinterpret_cast<uint4*>(out), words);
  });

  std::vector<uint32_t> got(static_cast<size_t>(words) * 4);
  CK(cudaMemcpy(got.data(), out, got.size() * 4, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (uint32_t i = 0; i < words; i += 3) {
    const uint32_t w = mix32(i ^ 0x13579bdfu);
    for (uint32_t e = 0; e < 8; ++e) {
      const uint32_t pair = got[static_cast<size_t>(i) * 4 + e / 2];
      const uint32_t bits = e & 1 ? pair & 0xffff0000u : pair << 16;
      float g;
      std::copy_n(reinterpret_cast<const char*>(&bits), 4, reinterpret_cast<char*>(&g));
      const float ref = code[(w >> (4 * e)) & 15] * scale_of(i / (kBlock / 8));
      sum += g;
      if (!(std::fabs(g - ref) <= 0.005f * std::fabs(ref))) {
        std::fprintf(stderr, "weight %u.%u: got %g want %g\n", i, e, g, ref);
        return 1;
      }
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
