// SPDX-License-Identifier: Apache-2.0
// Temporal FIR filter along the frames of a high-speed camera recording, one thread a pixel column.
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

namespace video {

constexpr int kThreads = 128;

template <int TAPS>
struct Taps { float c[TAPS]; };

__device__ __forceinline__ void cp16(void* dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(dst))), "l"(src) : "memory");
}

struct Identity {
  __device__ __forceinline__ float operator()(float v) const { return v; }
};
struct Rectify {
  float floor;
  __device__ __forceinline__ float operator()(float v) const { return fmaxf(v, floor); }
};

// Frames arrive in groups of TAPS through a ring of STAGES groups in shared memory.
template <int TAPS, int STAGES, class Post>
__global__ __launch_bounds__(kThreads) void temporal_fir(const float* __restrict__ in, float* __restrict__ out, int pixels,
                                                         int frames, const __grid_constant__ Taps<TAPS> taps, Post post) {
  static_assert((TAPS & (TAPS - 1)) == 0, "window index is masked");
  extern __shared__ __align__(16) float ring[];  // [STAGES][TAPS][kThreads]
  const int tid = threadIdx.x;
  const int px0 = blockIdx.x * kThreads;
  const int chunk = frames / gridDim.y, start = blockIdx.y * chunk;
  const int groups = chunk / TAPS;

  auto fetch = [&](int g) {
    if (g < groups) {
      float* dst = ring + (g % STAGES) * TAPS * kThreads;
      const float* src = in + size_t(start + g * TAPS) * pixels + px0;
#pragma unroll
      for (int i = 0; i < TAPS * kThreads / (4 * kThreads); ++i) {
        const int v = i * kThreads + tid, f = v / (kThreads / 4), q = v % (kThreads / 4);
        cp16(dst + f * kThreads + 4 * q, src + size_t(f) * pixels + 4 * q);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
#pragma unroll
  for (int g = 0; g < STAGES - 1; ++g) fetch(g);

  float win[TAPS];
#pragma unroll
  for (int k = 0; k < TAPS; ++k) {
    const int f = start - TAPS + k;
    win[k] = f >= 0 ? in[size_t(f) * pixels + px0 + tid] : 0.f;
  }
  float* dst = out + size_t(start) * pixels + px0 + tid;
  for (int g = 0; g < groups; ++g) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    fetch(g + STAGES - 1);
    const float* tile = ring + (g % STAGES) * TAPS * kThreads + tid;
#pragma unroll
    for (int p = 0; p < TAPS; ++p) {
      win[p] = tile[p * kThreads];
      float a = 0.f, b = 0.f;
#pragma unroll
      for (int k = 0; k < TAPS; k += 2) {
        a = fmaf(taps.c[k], win[(p - k) & (TAPS - 1)], a);
        b = fmaf(taps.c[k + 1], win[(p - k - 1) & (TAPS - 1)], b);
      }
      __stcs(dst, post(a + b));
      dst += pixels;
    }
  }
}

}  // namespace video

int main() {
  using namespace video;
  constexpr int taps = 32, stages = 3;
  const int pixels = 128 * 264, frames = 2048, segments = 4;
  std::vector<float> h(size_t(pixels) * frames);
  for (auto& v : h) v = frnd() - 0.4f;
  Taps<taps> c;
  for (int k = 0; k < taps; ++k) c.c[k] = std::sin(0.3f * (k + 1)) / (k + 1);
  float *di, *dout;
  CK(cudaMalloc(&di, h.size() * 4));
  CK(cudaMalloc(&dout, h.size() * 4));
  CK(cudaMemcpy(di, h.data(), h.size() * 4, cudaMemcpyHostToDevice));
  const int smem = stages * taps * kThreads * 4;
  CK(cudaFuncSetAttribute(temporal_fir<taps, stages, Rectify>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  Taps<8> pre;
  for (int k = 0; k < 8; ++k) pre.c[k] = 0.125f;
  temporal_fir<8, 3, Identity><<<dim3(8, 1), kThreads, 3 * 8 * kThreads * 4>>>(di, dout, pixels, 64, pre, Identity{});  // preview
  const Rectify post{-0.5f};
  const float us = time_steps(50, [&] {
    temporal_fir<taps, stages, Rectify><<<dim3(pixels / kThreads, segments), kThreads, smem>>>(di, dout, pixels, frames, c, post);
  });
  std::vector<float> o(h.size());
  CK(cudaMemcpy(o.data(), dout, o.size() * 4, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 20000; ++t) {
    const int p = rnd() % pixels, f = rnd() % frames;
    double s = 0;
    for (int k = 0; k < taps && k <= f; ++k) s += double(c.c[k]) * h[size_t(f - k) * pixels + p];
    s = std::max(s, double(post.floor));
    if (std::fabs(s - o[size_t(f) * pixels + p]) > 1e-4) {
      std::printf("mismatch at pixel %d frame %d: %f %f\n", p, f, s, o[size_t(f) * pixels + p]);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
