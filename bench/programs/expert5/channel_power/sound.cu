// SPDX-License-Identifier: Apache-2.0
// Power spectra of a multi-beam spectrometer: sums of |x|^2 over time of 8-bit complex channel samples.
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

namespace spectro {

// One packed word holds two complex int8 samples (re, im, re, im).
struct Power {
  __device__ __forceinline__ int2 operator()(uint32_t w) const {
    const int lo = int(w & 0x0000ffffu), hi = int(w & 0xffff0000u);
    return make_int2(__dp4a(lo, lo, 0), __dp4a(hi, hi, 0));
  }
};

template <int CH>
struct Acc {
  int v[CH];
};

// A thread owns eight adjacent channels (one 16-byte vector) and a span of times.
template <int UNROLL, bool SCALED, class Detect>
__global__ __launch_bounds__(256) void integrate(const uint4* __restrict__ in, float* __restrict__ out, int vectors, int span,
                                                 float scale, Detect detect) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  const uint4* p = in + size_t(blockIdx.y) * span * vectors + v;
  Acc<8> a{};
  for (int t = 0; t < span; t += UNROLL) {
    uint4 x[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) x[u] = __ldcs(p + size_t(u) * vectors);
    p += size_t(UNROLL) * vectors;
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const uint32_t w[4] = {x[u].x, x[u].y, x[u].z, x[u].w};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int2 q = detect(w[k]);
        a.v[2 * k] += q.x;
        a.v[2 * k + 1] += q.y;
      }
    }
  }
  float4 lo = make_float4(a.v[0], a.v[1], a.v[2], a.v[3]);
  float4 hi = make_float4(a.v[4], a.v[5], a.v[6], a.v[7]);
  if (SCALED) {
    lo.x *= scale; lo.y *= scale; lo.z *= scale; lo.w *= scale;
    hi.x *= scale; hi.y *= scale; hi.z *= scale; hi.w *= scale;
  }
  float4* o = reinterpret_cast<float4*>(out) + (size_t(blockIdx.y) * vectors + v) * 2;
  o[0] = lo;
  o[1] = hi;
}

}  // namespace spectro

int main() {
  using namespace spectro;
  const int channels = 8 * 256 * 11, vectors = channels / 8;  // 11 beams of 2048
  const int span = 256, integrations = 96;                    // 11 * 96 = 8 * 132 blocks
  const size_t n = size_t(vectors) * span * integrations;
  std::vector<uint4> h(n);
  for (auto& x : h) x = make_uint4(rnd(), rnd(), rnd(), rnd());
  uint4* d;
  float* o;
  CK(cudaMalloc(&d, n * 16));
  CK(cudaMalloc(&o, size_t(channels) * integrations * 4));
  CK(cudaMemcpy(d, h.data(), n * 16, cudaMemcpyHostToDevice));
  const float scale = 1.0f / span;
  const dim3 grid(vectors / 256, integrations);
  integrate<2, false, Power><<<dim3(vectors / 256, 1), 256>>>(d, o, vectors, 16, 1.f, Power{});  // quick look
  const float us = time_steps(60, [&] { integrate<4, true, Power><<<grid, 256>>>(d, o, vectors, span, scale, Power{}); });
  std::vector<float> r(size_t(channels) * integrations);
  CK(cudaMemcpy(r.data(), o, r.size() * 4, cudaMemcpyDeviceToHost));
  const int8_t* b = reinterpret_cast<const int8_t*>(h.data());
  for (int k = 0; k < 20000; ++k) {
    const int c = rnd() % channels, i = rnd() % integrations;
    long long s = 0;
    for (int t = 0; t < span; ++t) {
      const int8_t* q = b + ((size_t(i) * span + t) * channels + c) * 2;
      s += int(q[0]) * q[0] + int(q[1]) * q[1];
    }
    const float want = float(s) * scale, got = r[size_t(i) * channels + c];
    if (std::fabs(want - got) > 1e-3f * want) {
      std::printf("mismatch channel %d integration %d: %f %f\n", c, i, want, got);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
