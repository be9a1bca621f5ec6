// SPDX-License-Identifier: Apache-2.0
// Band-pass FIR filter over the long sample streams of a multi-channel recorder, one warp a channel.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t e_ = (call);                                                         \
    if (e_ != cudaSuccess) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      return 1;                                                                      \
    }                                                                                \
  } while (0)

namespace dsp {

constexpr int kTile = 128;

struct Identity {
  __device__ __forceinline__ float operator()(float v) const { return v; }
};
struct Rectify {
  __device__ __forceinline__ float operator()(float v) const { return fabsf(v); }
};

__device__ __forceinline__ void publish() {
  __syncwarp();
}

template <int TAPS, int DEPTH, int WARPS, class Post>
__global__ void __launch_bounds__(WARPS * 32)
    fir_stream(const float* __restrict__ in, float* __restrict__ out, const float* __restrict__ taps, int samples, Post post) {
  static_assert(TAPS % 4 == 0 && TAPS <= kTile, "taps come in fours");
  __shared__ __align__(16) float line[WARPS][TAPS + kTile];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const size_t channel = size_t(blockIdx.x) * WARPS + warp;
  const float4* src = reinterpret_cast<const float4*>(in + channel * samples) + lane;
  float4* dst = reinterpret_cast<float4*>(out + channel * samples) + lane;
  float4* delay = reinterpret_cast<float4*>(line[warp]);
  const int tiles = samples / kTile;

  float h[TAPS];
#pragma unroll
  for (int k = 0; k < TAPS; ++k) h[k] = taps[k];

  float4 ring[DEPTH];
#pragma unroll
  for (int d = 0; d < DEPTH; ++d) ring[d] = src[d * (kTile / 4)];
  if (lane < TAPS / 4) delay[lane] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

  for (int t = 0; t < tiles; t += DEPTH) {
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      delay[TAPS / 4 + lane] = ring[d];
      const int ahead = t + d + DEPTH;
      if (ahead < tiles) ring[d] = src[ahead * (kTile / 4)];
      publish();

      float w[TAPS + 4];
#pragma unroll
      for (int k = 0; k < TAPS / 4 + 1; ++k) {
        const float4 v = delay[lane + k];
        w[4 * k] = v.x; w[4 * k + 1] = v.y; w[4 * k + 2] = v.z; w[4 * k + 3] = v.w;
      }
      float y[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
      for (int k = 0; k < TAPS; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i) y[i] = fmaf(h[k], w[TAPS + i - k], y[i]);
      dst[(t + d) * (kTile / 4)] = make_float4(post(y[0]), post(y[1]), post(y[2]), post(y[3]));

      float4 tail;
      if (lane < TAPS / 4) tail = delay[kTile / 4 + lane];
      publish();
      if (lane < TAPS / 4) delay[lane] = tail;
    }
  }
}

}  // namespace dsp

int main(int argc, char**) {
  constexpr int kTaps = 16, kDepth = 4, kWarps = 4;
  const int channels = 2112, samples = 32768;
  const size_t n = size_t(channels) * samples;
  std::vector<float> x(n), y(n), taps(kTaps);
  uint32_t s = 2024u;
  for (auto& v : x) {
    s = s * 1664525u + 1013904223u;
    v = (s >> 8) * (2.0f / 16777216.0f) - 1.0f;
  }
  for (int k = 0; k < kTaps; ++k) {
    const float c = k - (kTaps - 1) * 0.5f;
    taps[k] = (std::sin(1.9f * c) - std::sin(0.4f * c)) / (3.14159265f * c) * (0.54f - 0.46f * std::cos(6.2831853f * k / (kTaps - 1)));
  }
  float *d_x, *d_y, *d_taps;
  CK(cudaMalloc(&d_x, n * sizeof(float)));
  CK(cudaMalloc(&d_y, n * sizeof(float)));
  CK(cudaMalloc(&d_taps, kTaps * sizeof(float)));
  CK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_taps, taps.data(), kTaps * sizeof(float), cudaMemcpyHostToDevice));

  const bool rectify = argc > 1;
  auto step = [&] {
    if (rectify)
      dsp::fir_stream<kTaps, kDepth, kWarps, dsp::Rectify><<<channels / kWarps, kWarps * 32>>>(d_x, d_y, d_taps, samples, {});
    else
      dsp::fir_stream<kTaps, kDepth, kWarps, dsp::Identity><<<channels / kWarps, kWarps * 32>>>(d_x, d_y, d_taps, samples, {});
  };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 100;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));

  for (int c = 0; c < channels; c += 61)
    for (int i = 0; i < samples; i += 53) {
      double want = 0.0;
      for (int k = 0; k < kTaps && k <= i; ++k) want += double(taps[k]) * x[size_t(c) * samples + i - k];
      if (rectify) want = std::fabs(want);
      const double got = y[size_t(c) * samples + i];
      if (!(std::fabs(got - want) <= 1e-5)) {
        std::fprintf(stderr, "wrong sample %d of channel %d: %g, not %g\n", i, c, got, want);
        return 1;
      }
    }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
