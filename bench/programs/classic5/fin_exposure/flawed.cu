// SPDX-License-Identifier: Apache-2.0
// Counterparty exposure: weighted netting of simulated trade values per date and scenario, after a collateral threshold.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_TRY(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
  std::fprintf(stderr, "%s failed: %s\n", #x, cudaGetErrorString(e)); std::exit(2); } } while (0)

namespace xva {

constexpr int kThreads = 128;
constexpr int kMaxTradesPerSet = 25600;

struct Csa {
  float threshold, minimum_transfer;
  __host__ __device__ float residual(float netted) const {
    const float excess = netted - threshold;
    return excess > minimum_transfer ? threshold : (netted > 0.0f ? netted : 0.0f);
  }
};

template <typename Value, bool kCollateralised>
__global__ void __launch_bounds__(kThreads) net_exposure(const Value* __restrict__ mtm,
                                                         const float* __restrict__ weight, int trades, int scenarios,
                                                         Csa csa, float* __restrict__ exposure) {
  extern __shared__ float w[];
  const int date = blockIdx.y;
  for (int t = threadIdx.x; t < trades; t += kThreads) w[t] = weight[date * trades + t];
  __syncthreads();
  const int s = blockIdx.x * kThreads + threadIdx.x;
  if (s >= scenarios) return;
  const Value* column = mtm + size_t(date) * trades * scenarios + s;
  float net = 0.0f;
#pragma unroll 4
  for (int t = 0; t < trades; ++t) net = fmaf(w[t], float(column[size_t(t) * scenarios]), net);
  exposure[size_t(date) * scenarios + s] = kCollateralised ? csa.residual(net) : fmaxf(net, 0.0f);
}

}  // namespace xva

int main() {
  const int dates = 16, trades = 64, scenarios = 1 << 16;
  const size_t values = size_t(dates) * trades * scenarios;
  std::vector<float> mtm(values), weight(dates * trades);
  uint32_t x = 2463534242u;
  auto rnd = [&x] { x ^= x << 13; x ^= x >> 17; x ^= x << 5; return float(x >> 8) * (1.0f / 16777216.0f); };
  for (auto& v : mtm) v = rnd() - 0.45f;
  for (auto& v : weight) v = 0.5f + rnd();
  float *dm, *dw, *de;
  CUDA_TRY(cudaMalloc(&dm, values * 4));
  CUDA_TRY(cudaMalloc(&dw, weight.size() * 4));
  CUDA_TRY(cudaMalloc(&de, size_t(dates) * scenarios * 4));
  CUDA_TRY(cudaMemcpy(dm, mtm.data(), values * 4, cudaMemcpyHostToDevice));
  CUDA_TRY(cudaMemcpy(dw, weight.data(), weight.size() * 4, cudaMemcpyHostToDevice));
  const xva::Csa csa{4.0f, 0.5f};
  auto kernel = xva::net_exposure<float, true>;
  CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                xva::kMaxTradesPerSet * sizeof(float)));
  const size_t smem = xva::kMaxTradesPerSet * sizeof(float);
  const dim3 grid((scenarios + xva::kThreads - 1) / xva::kThreads, dates);
  auto step = [&] { kernel<<<grid, xva::kThreads, smem>>>(dm, dw, trades, scenarios, csa, de); };
  for (int i = 0; i < 3; ++i) step();
  CUDA_TRY(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CUDA_TRY(cudaEventCreate(&t0));
  CUDA_TRY(cudaEventCreate(&t1));
  const int iters = 200;
  CUDA_TRY(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CUDA_TRY(cudaEventRecord(t1));
  CUDA_TRY(cudaEventSynchronize(t1));
  CUDA_TRY(cudaGetLastError());
  float ms = 0;
  CUDA_TRY(cudaEventElapsedTime(&ms, t0, t1));
  std::vector<float> got(size_t(dates) * scenarios);
  CUDA_TRY(cudaMemcpy(got.data(), de, got.size() * 4, cudaMemcpyDeviceToHost));
  for (int d = 0; d < dates; ++d)
    for (int s = d; s < scenarios; s += 769) {
      double net = 0;
      for (int t = 0; t < trades; ++t) net += double(weight[d * trades + t]) * mtm[(size_t(d) * trades + t) * scenarios + s];
      if (std::fabs(net - 4.5) < 1e-3) continue;
      const float want = csa.residual(float(net));
      if (!(std::fabs(got[size_t(d) * scenarios + s] - want) < 1e-3f)) {
        std::printf("date %d scenario %d: %f, expected %f\n", d, s, got[size_t(d) * scenarios + s], want);
        return 1;
      }
    }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
