// SPDX-License-Identifier: Apache-2.0
// Proxy revaluation of an option portfolio: each instrument a polynomial on its own domain, floored and summed per scenario.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
  std::fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(e)); std::exit(2); } } while (0)

namespace proxy {

template <int kCoefficients>
struct Instrument {
  float4 domain;  // scale, offset, position, unused
  float4 poly[kCoefficients / 4];  // highest power first
};

template <int kCoefficients, int kInstruments, int kThreads>
__global__ void __launch_bounds__(kThreads, 4) revalue(const Instrument<kCoefficients>* __restrict__ book,
                                                       const float4* __restrict__ factor, float4* __restrict__ value) {
  __shared__ Instrument<kCoefficients> local[kInstruments];
  constexpr int kVecs = sizeof(local) / sizeof(float4);
  for (int i = threadIdx.x; i < kVecs; i += kThreads)
    reinterpret_cast<float4*>(local)[i] = reinterpret_cast<const float4*>(book)[i];
  const size_t at = size_t(blockIdx.x) * kThreads * 2 + threadIdx.x;
  const float4 lo = factor[at], hi = factor[at + kThreads];
  const float x[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
  float total[8] = {};
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < kInstruments; ++k) {
    const float4 d = local[k].domain;
    const float4 top = local[k].poly[0];
    float y[8], acc[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) y[j] = fmaf(x[j], d.x, d.y);
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[j] = fmaf(top.x, y[j], top.y);
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[j] = fmaf(acc[j], y[j], top.z);
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[j] = fmaf(acc[j], y[j], top.w);
#pragma unroll
    for (int c = 1; c < kCoefficients / 4; ++c) {
      const float4 q = local[k].poly[c];
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[j] = fmaf(acc[j], y[j], q.x);
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[j] = fmaf(acc[j], y[j], q.y);
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[j] = fmaf(acc[j], y[j], q.z);
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[j] = fmaf(acc[j], y[j], q.w);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) total[j] = fmaf(d.z, fmaxf(acc[j], 0.0f), total[j]);
  }
  value[at] = make_float4(total[0], total[1], total[2], total[3]);
  value[at + kThreads] = make_float4(total[4], total[5], total[6], total[7]);
}

}  // namespace proxy

int main() {
  constexpr int kCoef = 32, kBook = 48, kThreads = 256;
  using Inst = proxy::Instrument<kCoef>;
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int blocks = sms * 4 * 4;
  const size_t n = size_t(blocks) * kThreads * 8;
  std::vector<Inst> book(kBook);
  std::vector<float> x(n);
  uint32_t s = 777;
  auto rnd = [&s] { s = s * 1664525u + 1013904223u; return float(s >> 8) / 8388608.0f - 1.0f; };
  for (auto& b : book) {
    b.domain = make_float4(0.7f + 0.2f * rnd(), 0.08f * rnd(), 1.0f + 0.5f * rnd(), 0.0f);
    float* c = reinterpret_cast<float*>(b.poly);
    for (int i = 0; i < kCoef; ++i) c[i] = rnd() / (1.0f + 0.5f * (kCoef - 1 - i));
  }
  for (auto& v : x) v = rnd();
  Inst* dbook;
  float4 *dx, *dv;
  CK(cudaMalloc(&dbook, kBook * sizeof(Inst)));
  CK(cudaMalloc(&dx, n * 4));
  CK(cudaMalloc(&dv, n * 4));
  CK(cudaMemcpy(dbook, book.data(), kBook * sizeof(Inst), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dx, x.data(), n * 4, cudaMemcpyHostToDevice));
  auto step = [&] { proxy::revalue<kCoef, kBook, kThreads><<<blocks, kThreads>>>(dbook, dx, dv); };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  const int iters = 100;
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  CK(cudaGetLastError());
  float ms = 0;
  CK(cudaEventElapsedTime(&ms, a, b));
  std::vector<float> got(n);
  CK(cudaMemcpy(got.data(), dv, n * 4, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < n; i += 4099) {
    double want = 0;
    for (const auto& ins : book) {
      const double y = double(x[i]) * ins.domain.x + ins.domain.y;
      const float* c = reinterpret_cast<const float*>(ins.poly);
      double v = 0;
      for (int k = 0; k < kCoef; ++k) v = v * y + c[k];
      want += ins.domain.z * (v > 0 ? v : 0.0);
    }
    if (!(std::fabs(got[i] - want) < 2e-3 * (1.0 + std::fabs(want)))) {
      std::printf("scenario %zu: %f, expected %f\n", i, got[i], want);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
