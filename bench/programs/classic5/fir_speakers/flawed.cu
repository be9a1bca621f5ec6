// SPDX-License-Identifier: Apache-2.0
// Filters 32 audio channels with 256-tap FIR equalisers, one of four curves a channel.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace audio {

constexpr int kMaxTaps = 256;
constexpr int kCurves = 4;
constexpr int kThreads = 256;
__constant__ float cTaps[kCurves][kMaxTaps];

__device__ __forceinline__ int slot(int i) { return i + ((i >> 5) << 2); }

struct NoGain {
  __device__ float operator()(float y) const { return y; }
};
struct Gain {
  float g;
  __device__ float operator()(float y) const { return y * g; }
};

// in: [channel][samples + TAPS], the first TAPS samples being history; out: [channel][samples].
template <int TAPS, class Post>
__global__ void __launch_bounds__(kThreads) firBank(const float* __restrict__ in, float* __restrict__ out,
                                                    int samples, Post post) {
  constexpr int kOuts = 8;
  constexpr int kTile = kThreads * kOuts;
  __shared__ __align__(16) float x[(kTile + TAPS) * 9 / 8 + 8];
  const int channel = blockIdx.x;
  const float* taps = cTaps[channel % kCurves];
  const float* src = in + size_t(channel) * (samples + TAPS);
  float* dst = out + size_t(channel) * samples;
  const int tiles = samples / kTile;
  for (int tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const float4* s4 = reinterpret_cast<const float4*>(src + size_t(tile) * kTile);
    for (int i = threadIdx.x; i < (kTile + TAPS) / 4; i += kThreads)
      *reinterpret_cast<float4*>(&x[slot(4 * i)]) = s4[i];
    __syncthreads();

    const int base = threadIdx.x * kOuts;
    float w[kOuts + 4], acc[kOuts];
#pragma unroll
    for (int o = 0; o < kOuts; ++o) acc[o] = 0.f;
    const float4 f0 = *reinterpret_cast<const float4*>(&x[slot(base)]);
    const float4 f1 = *reinterpret_cast<const float4*>(&x[slot(base + 4)]);
    w[0] = f0.x; w[1] = f0.y; w[2] = f0.z; w[3] = f0.w;
    w[4] = f1.x; w[5] = f1.y; w[6] = f1.z; w[7] = f1.w;
#pragma unroll 8
    for (int k = 0; k < TAPS; k += 4) {
      const float4 f = *reinterpret_cast<const float4*>(&x[slot(base + k + 8)]);
      w[8] = f.x; w[9] = f.y; w[10] = f.z; w[11] = f.w;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float c = taps[k + j];
#pragma unroll
        for (int o = 0; o < kOuts; ++o) acc[o] = fmaf(c, w[o + j], acc[o]);
      }
#pragma unroll
      for (int o = 0; o < kOuts; ++o) w[o] = w[o + 4];
    }
    float4* d4 = reinterpret_cast<float4*>(dst + size_t(tile) * kTile + base);
    d4[0] = make_float4(post(acc[0]), post(acc[1]), post(acc[2]), post(acc[3]));
    d4[1] = make_float4(post(acc[4]), post(acc[5]), post(acc[6]), post(acc[7]));
    __syncthreads();
  }
}

}  // namespace audio

int main() {
  using namespace audio;
  constexpr int kTaps = 256;
  const int channels = 32, samples = 1 << 20;
  std::vector<float> hin(size_t(channels) * (samples + kTaps)), taps(kCurves * kMaxTaps);
  uint32_t s = 4242;
  auto rnd = [&] { s = s * 1664525u + 1013904223u; return float(s >> 8) * (2.f / 16777216.f) - 1.f; };
  for (auto& v : hin) v = rnd();
  for (int c = 0; c < kCurves; ++c)
    for (int k = 0; k < kTaps; ++k)
      taps[c * kMaxTaps + k] = 0.05f * rnd() * std::exp(-0.01f * (c + 1) * std::fabs(k - 128.f));
  float *in, *out;
  CK(cudaMalloc(&in, hin.size() * 4));
  CK(cudaMalloc(&out, size_t(channels) * samples * 4));
  CK(cudaMemcpy(in, hin.data(), hin.size() * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpyToSymbol(cTaps, taps.data(), taps.size() * 4));

  const dim3 grid(channels);
  const Gain gain{0.7f};
  firBank<128, NoGain><<<grid, kThreads>>>(in, out, samples, NoGain{});
  for (int i = 0; i < 5; ++i) firBank<kTaps, Gain><<<grid, kThreads>>>(in, out, samples, gain);
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 60;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) firBank<kTaps, Gain><<<grid, kThreads>>>(in, out, samples, gain);
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<float> got(size_t(channels) * samples);
  CK(cudaMemcpy(got.data(), out, got.size() * 4, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < got.size(); i += 4093) {
    const size_t c = i / samples, t = i % samples;
    double want = 0;
    for (int k = 0; k < kTaps; ++k)
      want += double(taps[(c % kCurves) * kMaxTaps + k]) * hin[c * (samples + kTaps) + t + k];
    want *= 0.7f;
    if (std::fabs(got[i] - want) > 1e-4) {
      fprintf(stderr, "mismatch at channel %zu sample %zu: %g, not %g\n", c, t, got[i], want);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
