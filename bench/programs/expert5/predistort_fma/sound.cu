// SPDX-License-Identifier: Apache-2.0
// Digital predistortion of baseband samples by a high-order memory polynomial with complex coefficients.
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

namespace dpd {

template <int TAPS, int ORDER>
struct Model {
  float2 c[TAPS][ORDER];  // polynomial in |x|^2 of each tap
};

struct Clip {
  float limit;
  __device__ __forceinline__ float2 operator()(float2 y) const {
    return make_float2(fminf(fmaxf(y.x, -limit), limit), fminf(fmaxf(y.y, -limit), limit));
  }
};

// SPT consecutive samples a thread; in[] carries TAPS - 1 (rounded up to even) leading samples.
template <int TAPS, int ORDER, int SPT, class Out>
__global__ __launch_bounds__(256) void predistort(const float4* __restrict__ in, float4* __restrict__ out,
                                                  const __grid_constant__ Model<TAPS, ORDER> m, Out post) {
  static_assert(SPT % 2 == 0 && TAPS % 2 == 0, "vectors hold two samples");
  constexpr int kWin = SPT + TAPS;
  const int tid = blockIdx.x * blockDim.x + threadIdx.x;
  float2 x[kWin];
#pragma unroll
  for (int v = 0; v < kWin / 2; ++v) {
    const float4 q = __ldg(in + size_t(tid) * (SPT / 2) + v);
    x[2 * v] = make_float2(q.x, q.y);
    x[2 * v + 1] = make_float2(q.z, q.w);
  }
  float2 y[SPT];
#pragma unroll
  for (int s = 0; s < SPT; ++s) y[s] = make_float2(0.f, 0.f);
#pragma unroll
  for (int t = 0; t < TAPS; ++t) {
    float2 g[SPT];
    float r[SPT];
#pragma unroll
    for (int s = 0; s < SPT; ++s) {
      const float2 v = x[TAPS + s - t];
      r[s] = fmaf(v.x, v.x, v.y * v.y);
      g[s] = m.c[t][ORDER - 1];
    }
#pragma unroll(ORDER / 2)
    for (int k = ORDER - 2; k >= 0; --k)
#pragma unroll
      for (int s = 0; s < SPT; ++s) {
        g[s].x = fmaf(g[s].x, r[s], m.c[t][k].x);
        g[s].y = fmaf(g[s].y, r[s], m.c[t][k].y);
      }
#pragma unroll
    for (int s = 0; s < SPT; ++s) {
      const float2 v = x[TAPS + s - t];
      y[s].x = fmaf(g[s].x, v.x, fmaf(-g[s].y, v.y, y[s].x));
      y[s].y = fmaf(g[s].x, v.y, fmaf(g[s].y, v.x, y[s].y));
    }
  }
#pragma unroll
  for (int v = 0; v < SPT / 2; ++v) {
    const float2 a = post(y[2 * v]), b = post(y[2 * v + 1]);
    out[size_t(tid) * (SPT / 2) + v] = make_float4(a.x, a.y, b.x, b.y);
  }
}

}  // namespace dpd

int main() {
  using namespace dpd;
  constexpr int taps = 4, order = 33, spt = 8;
  const int threads = 256, blocks = 132 * 64;
  const size_t n = size_t(threads) * blocks * spt;
  std::vector<float2> x(n + taps);
  for (auto& v : x) v = make_float2(frnd() * 1.4f - 0.7f, frnd() * 1.4f - 0.7f);
  Model<taps, order> m;
  for (int t = 0; t < taps; ++t)
    for (int k = 0; k < order; ++k) m.c[t][k] = make_float2((frnd() - 0.5f) / (1 + k + t), (frnd() - 0.5f) / (1 + k + t));
  float4 *di, *dout;
  CK(cudaMalloc(&di, (n + taps) * 8));
  CK(cudaMalloc(&dout, n * 8));
  CK(cudaMemcpy(di, x.data(), (n + taps) * 8, cudaMemcpyHostToDevice));
  Model<2, 4> small{};
  small.c[0][0] = make_float2(1.f, 0.f);
  predistort<2, 4, 2, Clip><<<16, threads>>>(di, dout, small, Clip{1.f});  // bypass model at start-up
  const Clip clip{4.f};
  const float us = time_steps(60, [&] { predistort<taps, order, spt, Clip><<<blocks, threads>>>(di, dout, m, clip); });
  std::vector<float2> y(n);
  CK(cudaMemcpy(y.data(), dout, n * 8, cudaMemcpyDeviceToHost));
  for (int k = 0; k < 50000; ++k) {
    const size_t i = (size_t(rnd()) << 3) % n;
    double re = 0, im = 0;
    for (int t = 0; t < taps; ++t) {
      const float2 v = x[i + taps - t];
      const double r = double(v.x) * v.x + double(v.y) * v.y;
      double gr = 0, gi = 0;
      for (int o = order - 1; o >= 0; --o) { gr = gr * r + m.c[t][o].x; gi = gi * r + m.c[t][o].y; }
      re += gr * v.x - gi * v.y;
      im += gr * v.y + gi * v.x;
    }
    re = std::min(std::max(re, -double(clip.limit)), double(clip.limit));
    im = std::min(std::max(im, -double(clip.limit)), double(clip.limit));
    if (std::fabs(re - y[i].x) > 1e-4 || std::fabs(im - y[i].y) > 1e-4) {
      std::printf("mismatch at sample %zu: %f %f vs %f %f\n", i, re, im, y[i].x, y[i].y);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
