// SPDX-License-Identifier: Apache-2.0
// Energy of every frame of a sensor archive: one warp per frame of 128 floats. The grid is
// persistent and warps draw frames from a ticket counter, because other streams share the GPU.
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

constexpr int kFrame = 128;
constexpr int kDraw = 16;
constexpr int kThreads = 256;

__device__ __forceinline__ float dot4(float4 v) {
  return fmaf(v.x, v.x, fmaf(v.y, v.y, fmaf(v.z, v.z, v.w * v.w)));
}

__global__ void __launch_bounds__(kThreads)
    energy_kernel(const float* __restrict__ in, float* __restrict__ out, uint32_t frames,
                  uint32_t* __restrict__ ticket) {
  const int lane = threadIdx.x & 31;
  for (;;) {
    uint32_t first = 0;
    if (lane == 0) first = atomicAdd(ticket, static_cast<uint32_t>(kDraw));
    first = __shfl_sync(0xffffffffu, first, 0);
    if (first >= frames) return;
    const float4* src = reinterpret_cast<const float4*>(in) + static_cast<size_t>(first) * 32;
    float mine = 0.0f;
#pragma unroll 4
    for (int r = 0; r < kDraw; ++r) {
      float e = dot4(__ldcs(src + r * 32 + lane));
#pragma unroll
      for (int o = 16; o > 0; o >>= 1) e += __shfl_xor_sync(0xffffffffu, e, o);
      if (lane == r) mine = e;
    }
    if (lane < kDraw) out[first + lane] = mine * (1.0f / kFrame);
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
  const uint32_t frames = 1 << 20;
  const uint32_t n = frames * kFrame;
  float *in, *out;
  uint32_t* ticket;
  CK(cudaMalloc(&in, n * sizeof(float)));
  CK(cudaMalloc(&out, frames * sizeof(float)));
  CK(cudaMalloc(&ticket, sizeof(uint32_t)));
  fill_kernel<<<sms * 8, 256>>>(in, n);
  const double us = time_us([&] {
    CK(cudaMemsetAsync(ticket, 0, sizeof(uint32_t)));
    energy_kernel<<<sms * 8, kThreads>>>(in, out, frames, ticket);
  });

  std::vector<float> got(frames);
  CK(cudaMemcpy(got.data(), out, frames * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (uint32_t f = 0; f < frames; ++f) {
    sum += got[f];
    if (f % 7 != 0) continue;
    double ref = 0;
    for (int k = 0; k < kFrame; ++k) {
      const double v = sample(f * kFrame + k);
      ref += v * v;
    }
    ref /= kFrame;
    if (!(std::fabs(got[f] - ref) <= 1e-4)) {
      std::fprintf(stderr, "frame %u: got %g want %g\n", f, got[f], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
