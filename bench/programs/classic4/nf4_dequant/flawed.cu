// SPDX-License-Identifier: Apache-2.0
// LLM inference: expands 4-bit codebook weights (NF4 or FP4, one scale per 64 weights) to half or float.
#include <cuda_fp16.h>
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

namespace quant {

enum Code { kNF4 = 0, kFP4 = 1 };

static const float kCodebooks[2][16] = {
    {-1.0f, -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0.0f,
     0.07958029f, 0.16093020f, 0.24611230f, 0.33791524f, 0.44070983f, 0.56261700f, 0.72295684f, 1.0f},
    {0.0f, 0.0052083f, 0.6666667f, 1.0f, 0.3333333f, 0.5f, 0.1666667f, 0.25f,
     -0.0f, -0.0052083f, -0.6666667f, -1.0f, -0.3333333f, -0.5f, -0.1666667f, -0.25f}};

__constant__ float c_codebook[2][16];

constexpr int kThreads = 256;
constexpr int kItems = 4;        // packed words a thread
constexpr int kGroup = 64;       // weights that share a scale

template <Code kCode>
struct Codebook {
  __device__ explicit Codebook() {}
  __device__ float operator[](uint32_t i) const { return c_codebook[kCode][i]; }
};

template <class T>
struct Pack8;
template <>
struct Pack8<__half> {
  uint4 v;
  __device__ void set(const float (&f)[8]) {
    __half2* h = reinterpret_cast<__half2*>(&v);
#pragma unroll
    for (int k = 0; k < 4; ++k) h[k] = __floats2half2_rn(f[2 * k], f[2 * k + 1]);
  }
};
template <>
struct Pack8<float> {
  float4 v[2];
  __device__ void set(const float (&f)[8]) {
    v[0] = make_float4(f[0], f[1], f[2], f[3]);
    v[1] = make_float4(f[4], f[5], f[6], f[7]);
  }
};

template <class T, Code kCode>
__global__ void __launch_bounds__(kThreads)
dequantize(const uint32_t* __restrict__ packed, const float* __restrict__ scale, T* __restrict__ out) {
  const Codebook<kCode> book;
  const size_t base = size_t(blockIdx.x) * (kThreads * kItems) + threadIdx.x;
  uint32_t w[kItems];
  float s[kItems];
#pragma unroll
  for (int j = 0; j < kItems; ++j) w[j] = packed[base + j * kThreads];
#pragma unroll
  for (int j = 0; j < kItems; ++j) s[j] = scale[(base + j * kThreads) / (kGroup / 8)];
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    float f[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) f[k] = book[(w[j] >> (4 * k)) & 15u] * s[j];
    Pack8<T> p;
    p.set(f);
    reinterpret_cast<Pack8<T>*>(out)[base + j * kThreads] = p;
  }
}

}  // namespace quant

static uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

int main(int argc, char**) {
  // gate, up and down projections of one layer: 3 x 4096 x 14336
  const size_t weights = 3ull * 4096 * 14336;
  const size_t words = weights / 8, groups = weights / quant::kGroup;
  constexpr int kIters = 250;
  std::vector<uint32_t> hw(words);
  std::vector<float> hs(groups);
  for (size_t i = 0; i < words; ++i) hw[i] = mix(uint32_t(i) + 1u);
  for (size_t i = 0; i < groups; ++i) hs[i] = 0.01f + float(mix(uint32_t(i) ^ 0x5555u) >> 8) * 1e-9f;
  uint32_t* dw;
  float* ds;
  __half* dout;
  CHECK(cudaMalloc(&dw, words * 4));
  CHECK(cudaMalloc(&ds, groups * 4));
  CHECK(cudaMalloc(&dout, weights * sizeof(__half)));
  CHECK(cudaMemcpy(dw, hw.data(), words * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ds, hs.data(), groups * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyToSymbol(quant::c_codebook, quant::kCodebooks, sizeof quant::kCodebooks));
  const bool fp4 = argc > 1;
  const int grid = int(words / (quant::kThreads * quant::kItems));
  auto step = [&] {
    if (fp4)
      quant::dequantize<__half, quant::kFP4><<<grid, quant::kThreads>>>(dw, ds, dout);
    else
      quant::dequantize<__half, quant::kNF4><<<grid, quant::kThreads>>>(dw, ds, dout);
  };
  for (int i = 0; i < 5; ++i) step();
  cudaEvent_t e0, e1;
  CHECK(cudaEventCreate(&e0));
  CHECK(cudaEventCreate(&e1));
  CHECK(cudaEventRecord(e0));
  for (int i = 0; i < kIters; ++i) step();
  CHECK(cudaEventRecord(e1));
  CHECK(cudaEventSynchronize(e1));
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<__half> got(weights);
  CHECK(cudaMemcpy(got.data(), dout, weights * sizeof(__half), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < weights; i += 509) {
    const uint32_t code = (hw[i / 8] >> (4 * (i % 8))) & 15u;
    const float want = quant::kCodebooks[fp4 ? 1 : 0][code] * hs[i / quant::kGroup];
    const float g = __half2float(got[i]);
    if (std::fabs(g - want) > 1e-3f * std::fabs(want) + 1e-7f) {
      std::fprintf(stderr, "wrong at weight %zu: %g, expected %g\n", i, g, want);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);
  return 0;
}
