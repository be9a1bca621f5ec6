// SPDX-License-Identifier: Apache-2.0
// Residual addition and RMS normalisation of bf16 token activations, one warp a token.
#include <cuda_bf16.h>
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

namespace llm {

union Pack8 {
  uint4 raw;
  __nv_bfloat162 pair[4];
};

template <int HIDDEN, int WARPS, bool ADD_RESIDUAL>
__global__ void __launch_bounds__(WARPS * 32)
    rms_norm(const uint4* __restrict__ x, const uint4* __restrict__ residual, const uint4* __restrict__ gain,
             uint4* __restrict__ sum_out, uint4* __restrict__ y, float eps, int tokens) {
  constexpr int CHUNKS = HIDDEN / (32 * 8);
  const int lane = threadIdx.x & 31;
  const int token = blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (token >= tokens) return;
  const size_t row = size_t(token) * (HIDDEN / 8) + lane;

  Pack8 a[CHUNKS], r[CHUNKS];
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) a[c].raw = __ldcs(x + row + c * 32);
  if (ADD_RESIDUAL) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) r[c].raw = __ldcs(residual + row + c * 32);
  }

  float square = 0.0f;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float2 f = __bfloat1622float2(a[c].pair[k]);
      if (ADD_RESIDUAL) {
        const float2 g = __bfloat1622float2(r[c].pair[k]);
        a[c].pair[k] = __floats2bfloat162_rn(f.x + g.x, f.y + g.y);
        f = __bfloat1622float2(a[c].pair[k]);
      }
      square = fmaf(f.x, f.x, fmaf(f.y, f.y, square));
    }
    if (ADD_RESIDUAL) __stcs(sum_out + row + c * 32, a[c].raw);
  }
#pragma unroll
  for (int d = 16; d; d >>= 1) square += __shfl_xor_sync(0xffffffffu, square, d);
  const float scale = rsqrtf(fmaf(square, 1.0f / HIDDEN, eps));

#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    Pack8 w;
    w.raw = __ldg(gain + lane + c * 32);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 f = __bfloat1622float2(a[c].pair[k]), g = __bfloat1622float2(w.pair[k]);
      w.pair[k] = __floats2bfloat162_rn(f.x * scale * g.x, f.y * scale * g.y);
    }
    __stcs(y + row + c * 32, w.raw);
  }
}

}  // namespace llm

int main(int argc, char**) {
  constexpr int kHidden = 1024, kWarps = 4;
  const int tokens = 65536;
  const size_t n = size_t(tokens) * kHidden;
  const float eps = 1e-6f;
  std::vector<__nv_bfloat16> x(n), res(n), gain(kHidden), sum(n), y(n);
  uint32_t s = 8191u;
  auto uniform = [&] { s = s * 1664525u + 1013904223u; return (s >> 8) * (2.0f / 16777216.0f) - 1.0f; };
  for (auto& v : x) v = __float2bfloat16(uniform());
  for (auto& v : res) v = __float2bfloat16(2.0f * uniform());
  for (auto& v : gain) v = __float2bfloat16(1.0f + 0.2f * uniform());
  const size_t bytes = n * sizeof(__nv_bfloat16);
  uint4 *d_x, *d_res, *d_gain, *d_sum, *d_y;
  CK(cudaMalloc(&d_x, bytes));
  CK(cudaMalloc(&d_res, bytes));
  CK(cudaMalloc(&d_gain, kHidden * sizeof(__nv_bfloat16)));
  CK(cudaMalloc(&d_sum, bytes));
  CK(cudaMalloc(&d_y, bytes));
  CK(cudaMemcpy(d_x, x.data(), bytes, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_res, res.data(), bytes, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_gain, gain.data(), kHidden * sizeof(__nv_bfloat16), cudaMemcpyHostToDevice));

  const bool add = argc == 1;
  auto step = [&] {
    if (add) llm::rms_norm<kHidden, kWarps, true><<<tokens / kWarps, kWarps * 32>>>(d_x, d_res, d_gain, d_sum, d_y, eps, tokens);
    else llm::rms_norm<kHidden, kWarps, false><<<tokens / kWarps, kWarps * 32>>>(d_x, d_res, d_gain, d_sum, d_y, eps, tokens);
  };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 200;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(y.data(), d_y, bytes, cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(sum.data(), d_sum, bytes, cudaMemcpyDeviceToHost));

  for (int t = 0; t < tokens; t += 97) {
    std::vector<float> h(kHidden);
    double square = 0.0;
    for (int i = 0; i < kHidden; ++i) {
      const size_t j = size_t(t) * kHidden + i;
      h[i] = __bfloat162float(x[j]);
      if (add) h[i] = __bfloat162float(__float2bfloat16(h[i] + __bfloat162float(res[j])));
      square += double(h[i]) * h[i];
      if (add && __bfloat162float(sum[j]) != h[i]) {
        std::fprintf(stderr, "wrong sum in token %d\n", t);
        return 1;
      }
    }
    const double scale = 1.0 / std::sqrt(square / kHidden + eps);
    for (int i = 0; i < kHidden; ++i) {
      const double want = h[i] * scale * __bfloat162float(gain[i]);
      const double got = __bfloat162float(y[size_t(t) * kHidden + i]);
      if (!(std::fabs(got - want) <= 0.005 * std::fabs(want) + 1e-5)) {
        std::fprintf(stderr, "wrong output %d of token %d: %g, not %g\n", i, t, got, want);
        return 1;
      }
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
