// SPDX-License-Identifier: Apache-2.0
// Multi-channel audio: a 32-tap FIR filter with soft limiter over interleaved channels, in time segments.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                        \
  do {                                                                                  \
    cudaError_t e_ = (x);                                                               \
    if (e_ != cudaSuccess) {                                                            \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));   \
      std::exit(2);                                                                     \
    }                                                                                   \
  } while (0)

namespace audio {

constexpr int kMaxTaps = 64;
__constant__ float c_taps[kMaxTaps];

template <int kTaps>
class DelayLine {
 public:
  __device__ DelayLine() {
#pragma unroll
    for (int k = 0; k < kTaps; ++k) z_[k] = 0.f;
  }
  __device__ void push(float x) {
    head_ = (head_ + 1) & (kTaps - 1);
    z_[head_] = x;
  }
  __device__ float filter() const {
    float y0 = 0.f, y1 = 0.f;
#pragma unroll
    for (int k = 0; k < kTaps; k += 2) {
      y0 = fmaf(c_taps[k], z_[(head_ - k) & (kTaps - 1)], y0);
      y1 = fmaf(c_taps[k + 1], z_[(head_ - k - 1) & (kTaps - 1)], y1);
    }
    return y0 + y1;
  }

 private:
  float z_[kTaps];
  int head_ = 0;
};

template <bool kOn>
__device__ float limit(float y, float threshold) {
  return kOn ? fminf(fmaxf(y, -threshold), threshold) : y;
}

// One thread: one channel, one segment of time.
template <int kTaps, bool kLimiter>
__global__ void __launch_bounds__(256)
filter_segments(const float* __restrict__ in, float* __restrict__ out, int channels, int frames,
                int segment, float threshold) {
  const int ch = blockIdx.x * blockDim.x + threadIdx.x;
  const int begin = blockIdx.y * segment;
  if (ch >= channels) return;
  DelayLine<kTaps> line;
  const float* src = in + ch;
  for (int t = max(0, begin - (kTaps - 1)); t < begin; ++t) line.push(src[size_t(t) * channels]);

  constexpr int kBatch = 8;
  src += size_t(begin) * channels;
  float* dst = out + size_t(begin) * channels + ch;
  float next[kBatch];
#pragma unroll
  for (int u = 0; u < kBatch; ++u) next[u] = src[size_t(u) * channels];
  for (int t = 0; t < segment; t += kBatch) {
    float x[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; ++u) x[u] = next[u];
    if (t + kBatch < segment) {
#pragma unroll
      for (int u = 0; u < kBatch; ++u) next[u] = src[size_t(t + kBatch + u) * channels];
    }
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      line.push(x[u]);
      dst[size_t(t + u) * channels] = limit<kLimiter>(line.filter(), threshold);
    }
  }
}

}  // namespace audio

int main(int argc, char**) {
  constexpr int kTaps = 32, kChannels = 16896, kFrames = 4096, kSegment = 256, kIters = 200;
  const size_t n = size_t(kChannels) * kFrames;
  std::vector<float> h(n), taps(audio::kMaxTaps, 0.f);
  uint32_t st = 2024u;
  for (auto& v : h) {
    st = st * 1664525u + 1013904223u;
    v = float(st >> 8) * (2.f / 16777216.f) - 1.f;
  }
  for (int k = 0; k < kTaps; ++k) {
    const float x = (k - 15.5f) * 0.35f;
    taps[k] = 0.111f * std::sin(x) / x * (0.54f + 0.46f * std::cos(3.14159265f * (k - 15.5f) / 16.f));
  }
  float *din, *dout;
  CHECK(cudaMalloc(&din, n * 4));
  CHECK(cudaMalloc(&dout, n * 4));
  CHECK(cudaMemcpy(din, h.data(), n * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyToSymbol(audio::c_taps, taps.data(), audio::kMaxTaps * 4));
  const bool limiter = argc < 2;
  const float threshold = 0.6f;
  const dim3 grid(kChannels / 256, kFrames / kSegment);
  auto step = [&] {
    if (limiter)
      audio::filter_segments<kTaps, true><<<grid, 256>>>(din, dout, kChannels, kFrames, kSegment, threshold);
    else
      audio::filter_segments<kTaps, false><<<grid, 256>>>(din, dout, kChannels, kFrames, kSegment, threshold);
  };
  for (int i = 0; i < 4; ++i) step();
  cudaEvent_t a, b;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  CHECK(cudaEventRecord(a));
  for (int i = 0; i < kIters; ++i) step();
  CHECK(cudaEventRecord(b));
  CHECK(cudaEventSynchronize(b));
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, a, b));

  std::vector<float> got(n);
  CHECK(cudaMemcpy(got.data(), dout, n * 4, cudaMemcpyDeviceToHost));
  for (int c = 0; c < kChannels; c += 1237)
    for (int t = 0; t < kFrames; t += 7) {
      float y = 0;
      for (int k = 0; k < kTaps && k <= t; ++k) y += taps[k] * h[size_t(t - k) * kChannels + c];
      if (limiter) y = std::fmin(std::fmax(y, -threshold), threshold);
      const float g = got[size_t(t) * kChannels + c];
      if (std::fabs(g - y) > 1e-4f) {
        std::fprintf(stderr, "wrong at channel %d frame %d: %g, expected %g\n", c, t, g, y);
        return 1;
      }
    }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);
  return 0;
}
