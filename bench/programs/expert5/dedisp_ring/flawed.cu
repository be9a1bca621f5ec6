// SPDX-License-Identifier: Apache-2.0
// Incoherent dedispersion of a radio filterbank held in a circular buffer, for many dispersion-measure trials at once.
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

namespace frb {

struct RingView {
  const float* __restrict__ data;  // [channel][slot]
  uint32_t length;                 // slots per channel
  int channels;
};

struct UnitWeight {
  __device__ __forceinline__ float operator()(int, float v) const { return v; }
};
struct ChannelWeight {
  const float* __restrict__ w;
  __device__ __forceinline__ float operator()(int c, float v) const {
    return v * __ldg(w + c);
  }
};

// One thread: one output sample of DMS trials. One block: 256 samples.
template <int DMS, class Weight>
__global__ __launch_bounds__(256) void dedisperse(RingView ring,
                                                  const int* __restrict__ delay,
                                                  float* __restrict__ out,
                                                  uint64_t first_sample,
                                                  int samples, Weight weight) {
  extern __shared__ int sdelay[];  // [channel][DMS]
  const int dm0 = blockIdx.y * DMS;
  for (int i = threadIdx.x; i < ring.channels * DMS; i += blockDim.x) {
    const int d = i / ring.channels, c = i - d * ring.channels;
    sdelay[c * DMS + d] = delay[(dm0 + d) * ring.channels + c];
  }
  __syncthreads();

  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= samples) return;
  const uint64_t now = first_sample + uint64_t(t);

  float acc[DMS];
#pragma unroll
  for (int d = 0; d < DMS; ++d) acc[d] = 0.f;

  const float* __restrict__ row = ring.data;
#pragma unroll 2
  for (int c = 0; c < ring.channels; ++c, row += ring.length) {
    const int4* lag4 = reinterpret_cast<const int4*>(sdelay + c * DMS);
    int lag[DMS];
#pragma unroll
    for (int q = 0; q < DMS / 4; ++q) {
      const int4 v = lag4[q];
      lag[4 * q] = v.x; lag[4 * q + 1] = v.y;
      lag[4 * q + 2] = v.z; lag[4 * q + 3] = v.w;
    }
#pragma unroll
    for (int d = 0; d < DMS; ++d) {
      const uint32_t slot = uint32_t((now + uint64_t(lag[d])) % ring.length);
      acc[d] += weight(c, __ldg(row + slot));
    }
  }
#pragma unroll
  for (int d = 0; d < DMS; ++d) out[size_t(dm0 + d) * samples + t] = acc[d];
}

}  // namespace frb

int main() {
  const int channels = 256, trials = 128, samples = 8192;
  const uint32_t length = 20000;
  const uint64_t first = 7345128934ull;
  constexpr int DMS = 8;
  std::vector<float> ring(size_t(channels) * length);
  for (auto& v : ring) v = frnd() - 0.5f;
  std::vector<int> delay(trials * channels);
  for (int d = 0; d < trials; ++d)
    for (int c = 0; c < channels; ++c) {
      const float f = 1.2f + 0.4f * c / channels;
      delay[d * channels + c] = int(30.f * d * (1.f / (f * f) - 1.f / 2.56f));
    }
  float *dring, *dout, *dw;
  int* ddelay;
  CK(cudaMalloc(&dring, ring.size() * 4));
  CK(cudaMalloc(&dout, size_t(trials) * samples * 4));
  CK(cudaMalloc(&ddelay, delay.size() * 4));
  CK(cudaMalloc(&dw, channels * 4));
  std::vector<float> w(channels, 1.f);
  CK(cudaMemcpy(dw, w.data(), channels * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dring, ring.data(), ring.size() * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(ddelay, delay.data(), delay.size() * 4, cudaMemcpyHostToDevice));
  frb::RingView view{dring, length, channels};
  const size_t smem = size_t(channels) * DMS * sizeof(int);
  dim3 grid(samples / 256, trials / DMS);
  // calibration pass: weighted channels, first trials only
  frb::dedisperse<4, frb::ChannelWeight><<<dim3(samples / 256, 1), 256,
      channels * 4 * sizeof(int)>>>(view, ddelay, dout, first, samples, frb::ChannelWeight{dw});
  const float us = time_steps(40, [&] {
    frb::dedisperse<DMS, frb::UnitWeight><<<grid, 256, smem>>>(
        view, ddelay, dout, first, samples, frb::UnitWeight{});
  });
  std::vector<float> out(size_t(trials) * samples);
  CK(cudaMemcpy(out.data(), dout, out.size() * 4, cudaMemcpyDeviceToHost));
  for (int k = 0; k < 200; ++k) {
    const int d = rnd() % trials, t = rnd() % samples;
    double s = 0;
    for (int c = 0; c < channels; ++c)
      s += ring[size_t(c) * length + (first + t + delay[d * channels + c]) % length];
    if (std::fabs(s - out[size_t(d) * samples + t]) > 1e-3) {
      std::printf("mismatch at trial %d sample %d: %f %f\n", d, t, s, out[size_t(d) * samples + t]);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
