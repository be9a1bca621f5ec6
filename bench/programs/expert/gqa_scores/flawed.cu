// SPDX-License-Identifier: Apache-2.0
// Grouped-query attention, decoding: eight query heads share one bf16 key cache. A block scores 64
// tokens for one query head, half a warp per token, everything in registers.
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

constexpr int kDim = 128;
constexpr int kHeads = 8;
constexpr int kTokens = 64;
constexpr int kThreads = 128;
constexpr int kGroups = kThreads / 16;

__device__ __forceinline__ float dot2(uint32_t w, float a, float b, float s) {
  s = fmaf(__uint_as_float(w << 16), a, s);
  return fmaf(__uint_as_float(w & 0xffff0000u), b, s);
}

__global__ void __launch_bounds__(kThreads)
    group_scores_kernel(const uint4* __restrict__ keys, const float4* __restrict__ queries,
                        float* __restrict__ scores, int chunks) {
  const int group = threadIdx.x >> 4, part = threadIdx.x & 15;
  const int b = blockIdx.x;
  const int2 job = make_int2(b / chunks, b % chunks);
  const uint4* src = keys + static_cast<size_t>(job.y) * kTokens * (kDim / 8);
  uint4 k[kTokens / kGroups];
#pragma unroll
  for (int i = 0; i < kTokens / kGroups; ++i)
    k[i] = __ldg(src + (i * kGroups + group) * (kDim / 8) + part);
  const float4 q0 = queries[job.x * (kDim / 4) + part * 2];
  const float4 q1 = queries[job.x * (kDim / 4) + part * 2 + 1];
  float s[kTokens / kGroups];
#pragma unroll
  for (int i = 0; i < kTokens / kGroups; ++i)
    s[i] = dot2(k[i].x, q0.x, q0.y, dot2(k[i].y, q0.z, q0.w, 0.0f)) +
           dot2(k[i].z, q1.x, q1.y, dot2(k[i].w, q1.z, q1.w, 0.0f));
  float mine = 0.0f;
#pragma unroll
  for (int i = 0; i < kTokens / kGroups; ++i) {
#pragma unroll
    for (int o = 8; o > 0; o >>= 1) s[i] += __shfl_xor_sync(0xffffffffu, s[i], o);
    if (part == i) mine = s[i];
  }
  if (part < kTokens / kGroups)
    scores[(static_cast<size_t>(job.x) * chunks + job.y) * kTokens + part * kGroups + group] =
        mine * 0.08838834764f;
}

__host__ __device__ inline float element(uint32_t i) {
  return static_cast<float>(static_cast<int>(mix32(i) & 127) - 63) * (1.0f / 64.0f);
}
__global__ void fill_kernel(uint16_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = static_cast<uint16_t>(__float_as_uint(element(i)) >> 16);
}

int main() {
  const int chunks = 8192;
  const uint32_t tokens = chunks * kTokens, n = tokens * kDim;
  uint16_t* keys;
  float *queries, *scores;
  CK(cudaMalloc(&keys, static_cast<size_t>(n) * 2));
  CK(cudaMalloc(&queries, kHeads * kDim * sizeof(float)));
  CK(cudaMalloc(&scores, static_cast<size_t>(tokens) * kHeads * sizeof(float)));
  fill_kernel<<<2048, 256>>>(keys, n);
  std::vector<float> q(kHeads * kDim);
  for (size_t i = 0; i < q.size(); ++i) q[i] = element(0xf0000000u + static_cast<uint32_t>(i));
  CK(cudaMemcpy(queries, q.data(), q.size() * sizeof(float), cudaMemcpyHostToDevice));
  const double us = time_us([&] {
    group_scores_kernel<<<chunks * kHeads, kThreads>>>(
        reinterpret_cast<const uint4*>(keys), reinterpret_cast<const float4*>(queries), scores,
        chunks);
  });

  std::vector<float> got(static_cast<size_t>(tokens) * kHeads);
  CK(cudaMemcpy(got.data(), scores, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    sum += got[i];
    if (i % 13 != 0) continue;
    const uint32_t h = static_cast<uint32_t>(i / tokens), t = static_cast<uint32_t>(i % tokens);
    double ref = 0;
    for (int d = 0; d < kDim; ++d)
      ref += static_cast<double>(element(t * kDim + d)) * q[h * kDim + d];
    ref *= 0.08838834764;
    if (!(std::fabs(got[i] - ref) <= 1e-3)) {
      std::fprintf(stderr, "head %u token %u: got %g want %g\n", h, t, got[i], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
