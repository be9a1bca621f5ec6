// SPDX-License-Identifier: Apache-2.0
// Display transform of a batch of HDR frames: bf16 linear values in, exposure, clamp, encoding
// gamma, 8-bit values out; eight values per thread and step.
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

__device__ __forceinline__ uint32_t encode(float v, float exposure, float gamma) {
  const float c = fminf(v * exposure, 1.0f);
  const float e = powf(c, gamma);
  return __float2uint_rn(e * 255.0f);
}
__device__ __forceinline__ uint32_t encode4(uint32_t lo, uint32_t hi, float exposure, float gamma) {
  return encode(__uint_as_float(lo << 16), exposure, gamma) |
         encode(__uint_as_float(lo & 0xffff0000u), exposure, gamma) << 8 |
         encode(__uint_as_float(hi << 16), exposure, gamma) << 16 |
         encode(__uint_as_float(hi & 0xffff0000u), exposure, gamma) << 24;
}

__global__ void __launch_bounds__(kThreads)
    display_kernel(const uint4* __restrict__ in, uint2* __restrict__ out, uint32_t vectors,
                   float exposure, float gamma) {
  const uint32_t stride = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < vectors; i += stride) {
    const uint4 v = __ldcs(in + i);
    __stcs(out + i, make_uint2(encode4(v.x, v.y, exposure, gamma),
                               encode4(v.z, v.w, exposure, gamma)));
  }
}

__host__ __device__ inline uint16_t pixel(uint32_t i) {
  return static_cast<uint16_t>(0x3b00u + mix32(i) % 0x600u);
}
__global__ void fill_kernel(uint16_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = pixel(i);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const uint32_t frames = 16, n = frames * 3840 * 2160 * 4;
  const float exposure = 0.8f, gamma = 1.0f / 2.2f;
  uint16_t* in;
  uint8_t* out;
  CK(cudaMalloc(&in, static_cast<size_t>(n) * 2));
  CK(cudaMalloc(&out, n));
  fill_kernel<<<2048, 256>>>(in, n);
  const double us = time_us([&] {
    display_kernel<<<sms * 8, kThreads>>>(reinterpret_cast<const uint4*>(in),
                                          reinterpret_cast<uint2*>(out), n / 8, exposure, gamma);
  });

  std::vector<uint8_t> got(n);
  CK(cudaMemcpy(got.data(), out, n, cudaMemcpyDeviceToHost));
  long long sum = 0;
  for (uint32_t i = 0; i < n; ++i) sum += got[i];
  for (uint32_t s = 0; s < 2000000; ++s) {
    const uint32_t i = mix32(s ^ 0x55555555u) % n;
    const uint32_t bits = static_cast<uint32_t>(pixel(i)) << 16;
    float v;
    std::copy_n(reinterpret_cast<const char*>(&bits), 4, reinterpret_cast<char*>(&v));
    const double ref = 255.0 * std::pow(std::min(v * exposure, 1.0f), gamma);
    if (!(std::fabs(got[i] - ref) <= 0.6)) {
      std::fprintf(stderr, "value %u: got %d want %g\n", i, got[i], ref);
      return 1;
    }
  }
  std::printf("checksum: %lld\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
