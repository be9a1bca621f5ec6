// SPDX-License-Identifier: Apache-2.0
// Saliency-weighted grey-level histogram and equalisation curve of large microscopy images.
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

namespace imaging {

constexpr int kBins = 256;

template <int COPIES, int THREADS>
struct PrivateHistogram {
  uint32_t* cell;  // [bin][copy]
  int copy;
  __device__ __forceinline__ PrivateHistogram(uint32_t* smem) : cell(smem) {
    copy = (threadIdx.x >> 5) % COPIES;
    for (int i = threadIdx.x; i < kBins * COPIES; i += THREADS) cell[i] = 0u;
    __syncthreads();
  }
  __device__ __forceinline__ void add4(uint32_t grey, uint32_t weight) {
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const uint32_t g = __byte_perm(grey, 0, 0x4440 + b);
      const uint32_t w = __byte_perm(weight, 0, 0x4440 + b);
      atomicAdd(cell + g * COPIES + copy, w);
    }
  }
  __device__ __forceinline__ void flush(unsigned long long* total) const {
    __syncthreads();
    for (int b = threadIdx.x; b < kBins; b += THREADS) {
      unsigned long long s = 0;
#pragma unroll
      for (int c = 0; c < COPIES; ++c) s += cell[b * COPIES + ((c + b) % COPIES)];
      atomicAdd(total + b, s);
    }
  }
};

template <int COPIES, int THREADS>
__global__ __launch_bounds__(THREADS) void weighted_histogram(const uint4* __restrict__ grey,
                                                              const uint4* __restrict__ weight,
                                                              unsigned long long* __restrict__ total,
                                                              int vectors) {
  __shared__ uint32_t cells[kBins * COPIES];
  PrivateHistogram<COPIES, THREADS> h(cells);
  const int step = gridDim.x * THREADS;
  int i = blockIdx.x * THREADS + threadIdx.x;
  uint4 g = make_uint4(0, 0, 0, 0), w = g;
  if (i < vectors) { g = __ldcs(grey + i); w = __ldcs(weight + i); }
  while (i < vectors) {
    const int next = i + step;
    uint4 gn = make_uint4(0, 0, 0, 0), wn = gn;
    if (next < vectors) { gn = __ldcs(grey + next); wn = __ldcs(weight + next); }
    h.add4(g.x, w.x);
    h.add4(g.y, w.y);
    h.add4(g.z, w.z);
    h.add4(g.w, w.w);
    g = gn;
    w = wn;
    i = next;
  }
  h.flush(total);
}

__global__ void equalisation_curve(unsigned long long* __restrict__ total, float* __restrict__ curve,
                                   unsigned long long* __restrict__ kept) {
  __shared__ unsigned long long c[kBins];
  const int t = threadIdx.x;
  c[t] = total[t];
  kept[t] = c[t];
  total[t] = 0ull;
  __syncthreads();
  for (int d = 1; d < kBins; d <<= 1) {
    const unsigned long long v = t >= d ? c[t - d] : 0ull;
    __syncthreads();
    c[t] += v;
    __syncthreads();
  }
  curve[t] = float(c[t]) / float(c[kBins - 1]);
}

}  // namespace imaging

int main() {
  using namespace imaging;
  const int width = 16384, height = 8192;
  const size_t pixels = size_t(width) * height;
  std::vector<uint8_t> g(pixels), w(pixels);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const int cellx = x >> 10, celly = y >> 8;
      const uint32_t r = rnd();
      const bool speck = (r & 255u) < 12u;  // bright structures on a flat background
      g[size_t(y) * width + x] = speck ? uint8_t(r >> 8) : uint8_t(40 + ((cellx * 7 + celly * 3) & 31));
      w[size_t(y) * width + x] = uint8_t(r >> 16);
    }
  uint8_t *dg, *dw;
  unsigned long long *dt, *dk;
  float* dc;
  CK(cudaMalloc(&dg, pixels));
  CK(cudaMalloc(&dw, pixels));
  CK(cudaMalloc(&dt, kBins * 8));
  CK(cudaMalloc(&dk, kBins * 8));
  CK(cudaMalloc(&dc, kBins * 4));
  CK(cudaMemset(dt, 0, kBins * 8));
  CK(cudaMemcpy(dg, g.data(), pixels, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dw, w.data(), pixels, cudaMemcpyHostToDevice));
  constexpr int threads = 512;
  const float us = time_steps(40, [&] {
    weighted_histogram<16, threads><<<132 * 4, threads>>>((const uint4*)dg, (const uint4*)dw, dt, int(pixels / 16));
    equalisation_curve<<<1, kBins>>>(dt, dc, dk);
  });
  std::vector<unsigned long long> want(kBins, 0), got(kBins);
  for (size_t i = 0; i < pixels; ++i) want[g[i]] += w[i];
  CK(cudaMemcpy(got.data(), dk, kBins * 8, cudaMemcpyDeviceToHost));
  for (int b = 0; b < kBins; ++b)
    if (want[b] != got[b]) {
      std::printf("mismatch in bin %d: %llu %llu\n", b, want[b], got[b]);
      return 1;
    }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
