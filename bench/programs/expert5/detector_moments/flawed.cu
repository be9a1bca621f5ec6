// SPDX-License-Identifier: Apache-2.0
// First four statistics (sum, sum of squares, minimum, maximum) of each block of a calibrated detector read-out stream.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <algorithm>

#define CK(x)                                                                  \
  do {                                                                         \
    cudaError_t e_ = (x);                                                      \
    if (e_ != cudaSuccess) {                                                   \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__,                   \
                   cudaGetErrorString(e_));                                    \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

static uint32_t g_seed = 0x9E3779B9u;
static inline uint32_t rnd() {
  g_seed ^= g_seed << 13; g_seed ^= g_seed >> 17; g_seed ^= g_seed << 5;
  return g_seed;
}
[[maybe_unused]] static inline float frnd() { return (rnd() >> 8) * (1.0f / 16777216.0f); }

template <class F>
static float time_steps(int iters, F&& step) {
  for (int i = 0; i < 5; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  CK(cudaGetLastError());
  float ms = 0.f;
  CK(cudaEventElapsedTime(&ms, a, b));
  return ms * 1000.0f / iters;
}
#include <cfloat>

namespace daq {

__device__ __forceinline__ uint32_t saddr(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

struct Barrier {
  uint64_t word;
  __device__ __forceinline__ void init(uint32_t n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(saddr(&word)), "r"(n));
  }
  __device__ __forceinline__ void expect(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(saddr(&word)), "r"(bytes) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(saddr(&word)) : "memory");
  }
  __device__ __forceinline__ void wait(uint32_t parity) {
    asm volatile(
        "{\n.reg .pred P;\nW: mbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1;\n@P bra D;\nbra W;\nD:\n}" ::"r"(
            saddr(&word)), "r"(parity) : "memory");
  }
};

struct Moments {
  float sum, sq, lo, hi;
  __device__ __forceinline__ void clear() { sum = sq = 0.f; lo = FLT_MAX; hi = -FLT_MAX; }
  __device__ __forceinline__ void add(float v) {
    sum += v;
    sq = fmaf(v, v, sq);
    lo = fminf(lo, v);
    hi = fmaxf(hi, v);
  }
  __device__ __forceinline__ void merge(const Moments& o) {
    sum += o.sum;
    sq += o.sq;
    lo = fminf(lo, o.lo);
    hi = fmaxf(hi, o.hi);
  }
};

struct Gain {
  float g, o;
  __device__ __forceinline__ float operator()(float v) const { return fmaf(v, g, o); }
};
struct Raw {
  __device__ __forceinline__ float operator()(float v) const { return v; }
};

constexpr int kConsumers = 256;          // threads that reduce
constexpr int kTileBytes = 8192;         // two float4 a consumer
constexpr int kStages = 2;

template <class Calib, int STAGES>
__global__ __launch_bounds__(kConsumers + 32) void stream_moments(const float4* __restrict__ stream, Moments* __restrict__ out,
                                                                  int tiles, Calib calib) {
  extern __shared__ __align__(128) unsigned char ring[];
  __shared__ Barrier full[STAGES], empty[STAGES];
  __shared__ Moments warp_m[kConsumers / 32];
  constexpr int kVec = kTileBytes / 16;
  const int tid = threadIdx.x;
  if (tid == 0) {
    for (int s = 0; s < STAGES; ++s) {
      full[s].init(1);
      empty[s].init(kConsumers / 32);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  if (tid >= kConsumers) {
    if (tid == kConsumers) {
      int s = 0;
      uint32_t ph = 1;
      for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        empty[s].wait(ph);
        full[s].expect(kTileBytes);
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                saddr(ring + s * kTileBytes)), "l"(stream + size_t(t) * kVec), "r"(kTileBytes), "r"(saddr(&full[s].word))
            : "memory");
        if (++s == STAGES) { s = 0; ph ^= 1; }
      }
    }
    return;
  }

  Moments a, b;
  a.clear();
  b.clear();
  int s = 0;
  uint32_t ph = 0;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    full[s].wait(ph);
    const float4* tile = reinterpret_cast<const float4*>(ring + s * kTileBytes);
    const float4 x = tile[tid], y = tile[tid + kConsumers];
    __syncwarp();
    if ((tid & 31) == 0) empty[s].arrive();
    a.add(calib(x.x)); b.add(calib(x.y)); a.add(calib(x.z)); b.add(calib(x.w));
    a.add(calib(y.x)); b.add(calib(y.y)); a.add(calib(y.z)); b.add(calib(y.w));
    if (++s == STAGES) { s = 0; ph ^= 1; }
  }
  a.merge(b);
#pragma unroll
  for (int d = 16; d; d >>= 1) {
    Moments o;
    o.sum = __shfl_xor_sync(~0u, a.sum, d);
    o.sq = __shfl_xor_sync(~0u, a.sq, d);
    o.lo = __shfl_xor_sync(~0u, a.lo, d);
    o.hi = __shfl_xor_sync(~0u, a.hi, d);
    a.merge(o);
  }
  if ((tid & 31) == 0) warp_m[tid >> 5] = a;
  asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
  if (tid == 0) {
    for (int w = 1; w < kConsumers / 32; ++w) a.merge(warp_m[w]);
    out[blockIdx.x] = a;
  }
}

}  // namespace daq

int main() {
  using namespace daq;
  const size_t bytes = size_t(512) << 20;
  const int tiles = int(bytes / kTileBytes), blocks = 132;
  std::vector<float> h(bytes / 4);
  for (auto& v : h) v = frnd() * 4.f - 1.f;
  float4* d;
  Moments* dm;
  CK(cudaMalloc(&d, bytes));
  CK(cudaMalloc(&dm, blocks * sizeof(Moments)));
  CK(cudaMemcpy(d, h.data(), bytes, cudaMemcpyHostToDevice));
  const int smem = kStages * kTileBytes;
  CK(cudaFuncSetAttribute(stream_moments<Gain, kStages>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  stream_moments<Raw, 2><<<blocks, kConsumers + 32, 2 * kTileBytes>>>(d, dm, 264, Raw{});  // pedestal run
  const Gain gain{1.25f, -0.125f};
  const float us = time_steps(60, [&] {
    stream_moments<Gain, kStages><<<blocks, kConsumers + 32, smem>>>(d, dm, tiles, gain);
  });
  std::vector<Moments> m(blocks);
  CK(cudaMemcpy(m.data(), dm, blocks * sizeof(Moments), cudaMemcpyDeviceToHost));
  for (int b = 0; b < blocks; b += 11) {
    double s = 0, q = 0;
    float lo = FLT_MAX, hi = -FLT_MAX;
    for (int t = b; t < tiles; t += blocks)
      for (int i = 0; i < kTileBytes / 4; ++i) {
        const float v = std::fmaf(h[size_t(t) * (kTileBytes / 4) + i], gain.g, gain.o);
        s += v; q += double(v) * v; lo = std::min(lo, v); hi = std::max(hi, v);
      }
    if (std::fabs(s - m[b].sum) > 1e-3 * std::fabs(s) || std::fabs(q - m[b].sq) > 1e-3 * q || lo != m[b].lo || hi != m[b].hi) {
      std::printf("mismatch in block %d: %f %f\n", b, s, m[b].sum);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
