// SPDX-License-Identifier: Apache-2.0
// Radiative transfer: opacity of every cell as the weighted sum of the positive parts of 16 band polynomials.
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

namespace rt {

constexpr int kThreads = 256;

struct PositivePart {
  __host__ __device__ static float apply(float v) { return fmaxf(v, 0.f); }
};
struct Magnitude {
  __host__ __device__ static float apply(float v) { return fabsf(v); }
};

// coef: [band][kCoefs], highest power first. A thread evaluates kVecs * 4 cells with independent Horner chains.
template <class Shape, int kBands, int kCoefs, int kVecs>
__global__ void __launch_bounds__(kThreads)
opacity(const float4* __restrict__ log_temp, const float4* __restrict__ coef,
        const float* __restrict__ weight, float4* __restrict__ kappa) {
  static_assert(kCoefs % 4 == 0, "coefficients come four at a time");
  __shared__ float4 c[kBands][kCoefs / 4];
  __shared__ float w[kBands];
  for (int i = threadIdx.x; i < kBands * kCoefs / 4; i += kThreads) (&c[0][0])[i] = coef[i];
  if (threadIdx.x < kBands) w[threadIdx.x] = weight[threadIdx.x];

  const size_t base = size_t(blockIdx.x) * (kThreads * kVecs) + threadIdx.x;
  float x[kVecs * 4], sum[kVecs * 4];
#pragma unroll
  for (int v = 0; v < kVecs; ++v) {
    const float4 t = log_temp[base + v * kThreads];
    x[4 * v] = t.x;
    x[4 * v + 1] = t.y;
    x[4 * v + 2] = t.z;
    x[4 * v + 3] = t.w;
  }
#pragma unroll
  for (int e = 0; e < kVecs * 4; ++e) sum[e] = 0.f;
  __syncthreads();

#pragma unroll 1
  for (int b = 0; b < kBands; ++b) {
    float y[kVecs * 4];
#pragma unroll
    for (int k = 0; k < kCoefs / 4; ++k) {
      const float4 q = c[b][k];
#pragma unroll
      for (int e = 0; e < kVecs * 4; ++e) y[e] = k == 0 ? fmaf(q.x, x[e], q.y) : fmaf(y[e], x[e], q.x);
      if (k > 0) {
#pragma unroll
        for (int e = 0; e < kVecs * 4; ++e) y[e] = fmaf(y[e], x[e], q.y);
      }
#pragma unroll
      for (int e = 0; e < kVecs * 4; ++e) y[e] = fmaf(y[e], x[e], q.z);
#pragma unroll
      for (int e = 0; e < kVecs * 4; ++e) y[e] = fmaf(y[e], x[e], q.w);
    }
    const float wb = w[b];
#pragma unroll
    for (int e = 0; e < kVecs * 4; ++e) sum[e] = fmaf(wb, Shape::apply(y[e]), sum[e]);
  }
#pragma unroll
  for (int v = 0; v < kVecs; ++v)
    kappa[base + v * kThreads] = make_float4(sum[4 * v], sum[4 * v + 1], sum[4 * v + 2], sum[4 * v + 3]);
}

}  // namespace rt

static uint32_t rng_state = 555u;
static float uniform() {
  rng_state = rng_state * 1664525u + 1013904223u;
  return float(rng_state >> 8) * (2.f / 16777216.f) - 1.f;
}

int main(int argc, char**) {
  constexpr int kBands = 16, kCoefs = 32, kVecs = 4, kIters = 60;
  constexpr int kBlocks = 132 * 64;
  const size_t n = size_t(kBlocks) * rt::kThreads * kVecs * 4;
  std::vector<float> x(n), c(kBands * kCoefs), w(kBands);
  for (auto& v : x) v = uniform();
  for (auto& v : c) v = uniform() * 0.25f;
  for (auto& v : w) v = 0.5f + 0.4f * uniform();
  float4 *dx, *dc, *dk;
  float* dw;
  CHECK(cudaMalloc(&dx, n * 4));
  CHECK(cudaMalloc(&dk, n * 4));
  CHECK(cudaMalloc(&dc, c.size() * 4));
  CHECK(cudaMalloc(&dw, w.size() * 4));
  CHECK(cudaMemcpy(dx, x.data(), n * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dc, c.data(), c.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dw, w.data(), w.size() * 4, cudaMemcpyHostToDevice));
  const bool magnitude = argc > 1;
  auto step = [&] {
    if (magnitude)
      rt::opacity<rt::Magnitude, kBands, kCoefs, kVecs><<<kBlocks, rt::kThreads>>>(dx, dc, dw, dk);
    else
      rt::opacity<rt::PositivePart, kBands, kCoefs, kVecs><<<kBlocks, rt::kThreads>>>(dx, dc, dw, dk);
  };
  for (int i = 0; i < 4; ++i) step();
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

  std::vector<float> got(n);
  CHECK(cudaMemcpy(got.data(), dk, n * 4, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < n; i += 4099) {
    double want = 0;
    for (int b = 0; b < kBands; ++b) {
      double y = 0;
      for (int k = 0; k < kCoefs; ++k) y = y * x[i] + c[b * kCoefs + k];
      want += w[b] * (magnitude ? std::fabs(y) : std::fmax(y, 0.0));
    }
    if (std::fabs(got[i] - want) > 1e-3 * (1.0 + std::fabs(want))) {
      std::fprintf(stderr, "wrong in cell %zu: %g, expected %g\n", i, got[i], want);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);
  return 0;
}
