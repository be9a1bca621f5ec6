// SPDX-License-Identifier: Apache-2.0
// Streaming trigger: energy and peak of every 128-sample tile of digitised detector data, and totals by the last block.
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

namespace trigger {

constexpr int kWarps = 16, kThreads = kWarps * 32;

__device__ __forceinline__ void cp16(void* dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(dst))), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

struct Summary { float energy, peak; };

struct Totals {
  Summary* part;
  Summary* result;
  unsigned* ticket;
};

// Every warp has its own ring of DEPTH tiles; a lane reads back what it copied.
template <int DEPTH, bool BASELINE>
__global__ __launch_bounds__(kThreads) void scan_tiles(const float4* __restrict__ data, Summary* __restrict__ tile_out,
                                                       int tiles, float base, Totals tot) {
  __shared__ float4 ring[kWarps][DEPTH][32];
  __shared__ Summary wsum[kWarps];
  __shared__ bool last;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int stride = gridDim.x * kWarps;
  const int first = blockIdx.x * kWarps + warp;

#pragma unroll
  for (int s = 0; s < DEPTH - 1; ++s) {
    const int t = first + s * stride;
    if (t < tiles) cp16(&ring[warp][s][lane], data + size_t(t) * 32 + lane);
    cp_commit();
  }
  Summary acc{0.f, 0.f};
  int slot = 0;
  for (int t = first; t < tiles; t += stride) {
    const int ahead = t + (DEPTH - 1) * stride;
    if (ahead < tiles) cp16(&ring[warp][(slot + DEPTH - 1) % DEPTH][lane], data + size_t(ahead) * 32 + lane);
    cp_commit();
    cp_wait<DEPTH - 1>();
    float4 v = ring[warp][slot][lane];
    slot = (slot + 1) % DEPTH;
    if (BASELINE) { v.x -= base; v.y -= base; v.z -= base; v.w -= base; }
    float e = fmaf(v.x, v.x, fmaf(v.y, v.y, fmaf(v.z, v.z, v.w * v.w)));
    float p = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    // positive floats order like integers
    p = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(p)));
#pragma unroll
    for (int d = 16; d; d >>= 1) e += __shfl_xor_sync(~0u, e, d);
    if (lane == 0) {
      tile_out[t] = Summary{e, p};
      __threadfence();
      acc.energy += e;
      acc.peak = fmaxf(acc.peak, p);
    }
  }
  if (lane == 0) wsum[warp] = acc;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kWarps; ++w) {
      acc.energy += wsum[w].energy;
      acc.peak = fmaxf(acc.peak, wsum[w].peak);
    }
    tot.part[blockIdx.x] = acc;
    __threadfence();
    last = atomicInc(tot.ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && warp == 0) {
    __threadfence();
    float e = 0.f, p = 0.f;
    for (int b = lane; b < int(gridDim.x); b += 32) {
      const volatile Summary* q = tot.part + b;
      e += q->energy;
      p = fmaxf(p, q->peak);
    }
#pragma unroll
    for (int d = 16; d; d >>= 1) {
      e += __shfl_xor_sync(~0u, e, d);
      p = fmaxf(p, __shfl_xor_sync(~0u, p, d));
    }
    if (lane == 0) *tot.result = Summary{e, p};
  }
}

}  // namespace trigger

int main() {
  using namespace trigger;
  const int tiles = 1 << 20;
  const size_t n = size_t(tiles) * 128;
  std::vector<float> h(n);
  for (auto& v : h) v = frnd() - 0.25f;
  const int blocks = 132;
  float4* d;
  Summary *dt, *dp, *dr;
  unsigned* tk;
  CK(cudaMalloc(&d, n * 4));
  CK(cudaMalloc(&dt, size_t(tiles) * sizeof(Summary)));
  CK(cudaMalloc(&dp, blocks * sizeof(Summary)));
  CK(cudaMalloc(&dr, sizeof(Summary)));
  CK(cudaMalloc(&tk, 4));
  CK(cudaMemset(tk, 0, 4));
  CK(cudaMemcpy(d, h.data(), n * 4, cudaMemcpyHostToDevice));
  const Totals tot{dp, dr, tk};
  constexpr int depth = 5;
  scan_tiles<4, false><<<blocks, kThreads>>>(d, dt, 8192, 0.f, tot);  // threshold calibration
  const float us = time_steps(60, [&] {
    scan_tiles<depth, true><<<blocks, kThreads>>>(d, dt, tiles, 0.25f, tot);
  });
  std::vector<Summary> s(tiles);
  Summary r;
  CK(cudaMemcpy(s.data(), dt, size_t(tiles) * sizeof(Summary), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(&r, dr, sizeof(r), cudaMemcpyDeviceToHost));
  double total = 0;
  float peak = 0;
  for (int t = 0; t < tiles; ++t) {
    double e = 0;
    float p = 0;
    for (int i = 0; i < 128; ++i) {
      const float v = h[size_t(t) * 128 + i] - 0.25f;
      e += double(v) * v;
      p = std::max(p, std::fabs(v));
    }
    if (std::fabs(e - s[t].energy) > 1e-3 * e || p != s[t].peak) {
      std::printf("mismatch in tile %d: %f %f\n", t, e, s[t].energy);
      return 1;
    }
    total += e;
    peak = std::max(peak, p);
  }
  if (std::fabs(total - r.energy) > 1e-3 * total || peak != r.peak) {
    std::printf("mismatch in totals: %f %f\n", total, r.energy);
    return 1;
  }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
