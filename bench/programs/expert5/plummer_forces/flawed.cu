// SPDX-License-Identifier: Apache-2.0
// Softened gravitational forces of a star cluster by direct summation, and a leapfrog step.
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

namespace cluster {

__device__ __forceinline__ uint32_t saddr(const void* p) {
  return uint32_t(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void bar_init(uint64_t* b, uint32_t n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(saddr(b)), "r"(n));
}
__device__ __forceinline__ void bar_expect(uint64_t* b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(saddr(b)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(uint64_t* b, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred P;\nW: mbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1;\n"
      "@P bra D;\nbra W;\nD:\n}" ::"r"(saddr(b)), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_load(void* dst, const void* src, uint32_t bytes, uint64_t* b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(saddr(dst)),
      "l"(src), "r"(bytes), "r"(saddr(b)) : "memory");
}

struct Plummer {
  __device__ __forceinline__ void operator()(float4 a, float4 b, float3& f) const {
    const float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
    const float d2 = fmaf(dx, dx, fmaf(dy, dy, dz * dz));
    const float inv = rsqrt(d2 + 1e-3);
    const float s = b.w * inv * (inv * inv);
    f.x = fmaf(s, dx, f.x);
    f.y = fmaf(s, dy, f.y);
    f.z = fmaf(s, dz, f.z);
  }
};

constexpr int kThreads = 256;

// grid.x: blocks of kThreads * IPT targets; grid.y: slices of the sources.
template <int IPT, int JT, int STAGES, class Law>
__global__ __launch_bounds__(kThreads) void pair_forces(const float4* __restrict__ body,
                                                        float4* __restrict__ part,
                                                        int n, int slice, Law law) {
  __shared__ alignas(128) float4 tile[STAGES][JT];
  __shared__ uint64_t full[STAGES];
  const int tid = threadIdx.x;
  const float4* src = body + size_t(blockIdx.y) * slice;
  const int tiles = slice / JT;
  if (tid == 0) {
#pragma unroll
    for (int s = 0; s < STAGES; ++s) bar_init(&full[s], 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (tid == 0)
    for (int s = 0; s < STAGES && s < tiles; ++s) {
      bar_expect(&full[s], sizeof(float4) * JT);
      bulk_load(tile[s], src + s * JT, sizeof(float4) * JT, &full[s]);
    }

  const int i0 = blockIdx.x * kThreads * IPT + tid;
  float4 me[IPT];
  float3 f[IPT];
#pragma unroll
  for (int k = 0; k < IPT; ++k) {
    me[k] = body[i0 + k * kThreads];
    f[k] = make_float3(0.f, 0.f, 0.f);
  }
  int st = 0;
  uint32_t parity = 0;
  for (int t = 0; t < tiles; ++t) {
    bar_wait(&full[st], parity);
#pragma unroll 8
    for (int j = 0; j < JT; ++j) {
      const float4 b = tile[st][j];
#pragma unroll
      for (int k = 0; k < IPT; ++k) law(me[k], b, f[k]);
    }
    __syncthreads();
    if (tid == 0 && t + STAGES < tiles) {
      bar_expect(&full[st], sizeof(float4) * JT);
      bulk_load(tile[st], src + size_t(t + STAGES) * JT, sizeof(float4) * JT, &full[st]);
    }
    if (++st == STAGES) { st = 0; parity ^= 1; }
  }
#pragma unroll
  for (int k = 0; k < IPT; ++k)
    part[size_t(blockIdx.y) * n + i0 + k * kThreads] = make_float4(f[k].x, f[k].y, f[k].z, 0.f);
}

template <int SLICES>
__global__ void kick_drift(float4* __restrict__ body, float4* __restrict__ vel,
                           const float4* __restrict__ part, int n, float dt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = vel[i], p = body[i];
#pragma unroll
  for (int s = 0; s < SLICES; ++s) {
    const float4 a = part[size_t(s) * n + i];
    v.x += dt * a.x; v.y += dt * a.y; v.z += dt * a.z;
  }
  p.x += dt * v.x; p.y += dt * v.y; p.z += dt * v.z;
  vel[i] = v;
  body[i] = p;
}

}  // namespace cluster

int main() {
  using namespace cluster;
  constexpr int n = 32768, slices = 8, ipt = 2;
  const double eps2 = 1e-3;
  std::vector<float4> b(n);
  for (auto& p : b) p = make_float4(frnd() * 2 - 1, frnd() * 2 - 1, frnd() * 2 - 1, frnd() / n);
  float4 *db, *dv, *dp;
  CK(cudaMalloc(&db, n * sizeof(float4)));
  CK(cudaMalloc(&dv, n * sizeof(float4)));
  CK(cudaMalloc(&dp, size_t(slices) * n * sizeof(float4)));
  CK(cudaMemset(dv, 0, n * sizeof(float4)));
  CK(cudaMemcpy(db, b.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
  dim3 grid(n / (kThreads * ipt), slices);
  auto forces = [&] {
    pair_forces<ipt, 256, 3, Plummer><<<grid, kThreads>>>(db, dp, n, n / slices, Plummer{});
  };
  forces();
  std::vector<float4> part(size_t(slices) * n);
  CK(cudaMemcpy(part.data(), dp, part.size() * sizeof(float4), cudaMemcpyDeviceToHost));
  for (int k = 0; k < 24; ++k) {
    const int i = rnd() % n;
    double fx = 0, gx = 0;
    for (int j = 0; j < n; ++j) {
      const double dx = b[j].x - b[i].x, dy = b[j].y - b[i].y, dz = b[j].z - b[i].z;
      const double d2 = dx * dx + dy * dy + dz * dz + eps2;
      fx += b[j].w * dx / (d2 * std::sqrt(d2));
    }
    for (int s = 0; s < slices; ++s) gx += part[size_t(s) * n + i].x;
    if (std::fabs(fx - gx) > 2e-3 * (1.0 + std::fabs(fx))) {
      std::printf("mismatch at body %d: %g %g\n", i, fx, gx);
      return 1;
    }
  }
  const float us = time_steps(40, [&] {
    forces();
    kick_drift<slices><<<n / 256, 256>>>(db, dv, dp, n, 1e-5f);
  });
  CK(cudaMemcpy(b.data(), db, n * sizeof(float4), cudaMemcpyDeviceToHost));
  for (auto& p : b)
    if (!(std::fabs(p.x) < 4.f)) { std::printf("body escaped\n"); return 1; }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
