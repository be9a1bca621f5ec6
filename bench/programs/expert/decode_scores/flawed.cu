// SPDX-License-Identifier: Apache-2.0
// Attention scores of one decoding step: q.k for every cached token of every sequence. One block
// per SM streams its share of the bf16 key cache through a ring of 8 KB cp.async stages; half a
// warp takes a token.
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

constexpr int kDim = 128;
constexpr int kTokens = 32;
constexpr int kStages = 12;
constexpr int kThreads = 128;
constexpr int kTileElems = kTokens * kDim;

__device__ __forceinline__ float dot2(uint32_t w, float a, float b, float s) {
  s = fmaf(__uint_as_float(w << 16), a, s);
  return fmaf(__uint_as_float(w & 0xffff0000u), b, s);
}

__device__ __forceinline__ void fetch(uint16_t* slot, const uint16_t* src) {
#pragma unroll
  for (int i = 0; i < kTileElems / 8 / kThreads; ++i) {
    const int e = (threadIdx.x + i * kThreads) * 8;
    cp16(slot + e, src + e);
  }
}

__global__ void __launch_bounds__(kThreads)
    scores_kernel(const uint16_t* __restrict__ keys, const float* __restrict__ queries,
                  float* __restrict__ scores, int tiles, int tiles_per_sequence) {
  extern __shared__ __align__(128) unsigned char raw[];
  uint16_t* ring = reinterpret_cast<uint16_t*>(raw);
  const int group = threadIdx.x >> 4, part = threadIdx.x & 15;
  const int first = static_cast<int>(static_cast<long long>(tiles) * blockIdx.x / gridDim.x);
  const int last = static_cast<int>(static_cast<long long>(tiles) * (blockIdx.x + 1) / gridDim.x);

  for (int s = 0; s < kStages - 1; ++s) {
    if (first + s < last)
      fetch(ring + s * kTileElems, keys + static_cast<size_t>(first + s) * kTileElems);
    cp_commit();
  }
  int slot = 0, fill = kStages - 1;
  for (int t = first; t < last; ++t) {
    cp_wait<0>();
    __syncthreads();
    const int ahead = t + kStages - 1;
    if (ahead < last)
      fetch(ring + fill * kTileElems, keys + static_cast<size_t>(ahead) * kTileElems);
    cp_commit();

    const float4* q = reinterpret_cast<const float4*>(
        queries + t / tiles_per_sequence * kDim + part * 8);
    const float4 q0 = q[0], q1 = q[1];
    const uint4* tile = reinterpret_cast<const uint4*>(ring + slot * kTileElems);
    float s[kTokens / 8];
#pragma unroll
    for (int i = 0; i < kTokens / 8; ++i) {
      const uint4 k = tile[(i * 8 + group) * (kDim / 8) + part];
      s[i] = dot2(k.x, q0.x, q0.y, dot2(k.y, q0.z, q0.w, 0.0f)) +
             dot2(k.z, q1.x, q1.y, dot2(k.w, q1.z, q1.w, 0.0f));
    }
#pragma unroll
    for (int o = 8; o > 0; o >>= 1)
#pragma unroll
      for (int i = 0; i < kTokens / 8; ++i) s[i] += __shfl_xor_sync(0xffffffffu, s[i], o);
    if (part < kTokens / 8) {
      const float v = part == 0 ? s[0] : part == 1 ? s[1] : part == 2 ? s[2] : s[3];
      scores[static_cast<size_t>(t) * kTokens + part * 8 + group] = v * 0.08838834764f;
    }
    slot = slot + 1 == kStages ? 0 : slot + 1;
    fill = fill + 1 == kStages ? 0 : fill + 1;
  }
}

__host__ __device__ inline float element(uint32_t i) {
  return static_cast<float>(static_cast<int>(mix32(i) & 127) - 63) * (1.0f / 64.0f);
}
__global__ void fill_kernel(uint16_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = static_cast<uint16_t>(__float_as_uint(element(i)) >> 16);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int sequences = 128, length = 16384;
  const uint32_t tokens = static_cast<uint32_t>(sequences) * length;
  const uint32_t n = tokens * kDim;
  uint16_t* keys;
  float *queries, *scores;
  CK(cudaMalloc(&keys, static_cast<size_t>(n) * 2));
  CK(cudaMalloc(&queries, sequences * kDim * sizeof(float)));
  CK(cudaMalloc(&scores, tokens * sizeof(float)));
  fill_kernel<<<2048, 256>>>(keys, n);
  std::vector<float> q(sequences * kDim);
  for (size_t i = 0; i < q.size(); ++i) q[i] = element(0xf0000000u + static_cast<uint32_t>(i));
  CK(cudaMemcpy(queries, q.data(), q.size() * sizeof(float), cudaMemcpyHostToDevice));
  const int bytes = kStages * kTileElems * 2;
  CK(cudaFuncSetAttribute(scores_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const double us = time_us([&] {
    scores_kernel<<<sms, kThreads, bytes>>>(keys, queries, scores, tokens / kTokens,
                                            length / kTokens);
  });

  std::vector<float> got(tokens);
  CK(cudaMemcpy(got.data(), scores, tokens * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (uint32_t t = 0; t < tokens; ++t) {
    sum += got[t];
    if (t % 5 != 0) continue;
    double ref = 0;
    for (int d = 0; d < kDim; ++d)
      ref += static_cast<double>(element(t * kDim + d)) * q[t / length * kDim + d];
    ref *= 0.08838834764;
    if (!(std::fabs(got[t] - ref) <= 1e-3)) {
      std::fprintf(stderr, "token %u: got %g want %g\n", t, got[t], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
