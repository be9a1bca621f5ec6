// SPDX-License-Identifier: Apache-2.0
// waves: 176 equal blocks, one per SM at a time: the second wave fills a third of the SMs; + issue
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>
#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::printf("%s: %s\n", #x, cudaGetErrorString(e_)); std::exit(1); } } while (0)
using u64 = unsigned long long;
constexpr int kPlain = 30, kClock = 10, kSMs = 132;
__device__ __forceinline__ u64 ns() { u64 t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t) :: "memory"); return t; }
__device__ __forceinline__ u64 cyc() { u64 t; asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory"); return t; }
static double median(std::vector<double> v) { std::sort(v.begin(), v.end()); return v[v.size() / 2]; }
constexpr int kBlock = 512, kGrid = kSMs + kSMs / 3, kIters = 1400, kPerIter = 68;  // kPerIter: SASS instructions of the loop body
constexpr size_t kSmem = 120 << 10;  // one block per SM
struct Rec { u64 t0, t1, c0, c1; };
// kChains independent FFMA chains, 64 FFMA an iteration
template <int kChains> __device__ __forceinline__ float ffma(float x, int n) {
  float v[kChains], s = 0.f;
#pragma unroll
  for (int j = 0; j < kChains; j++) v[j] = x + j;
#pragma unroll 1
  for (int i = 0; i < n; i++) {
#pragma unroll
    for (int u = 0; u < 64; u++) v[u % kChains] = fmaf(v[u % kChains], 0.999f, 0.001f);
  }
#pragma unroll
  for (int j = 0; j < kChains; j++) s += v[j];
  return s;
}
template <bool kClocked> __global__ void __launch_bounds__(kBlock) tiles(float* out, Rec* rec) {
  Rec r;
  if constexpr (kClocked) { r.t0 = ns(); r.c0 = cyc(); }
  int i = blockIdx.x * kBlock + threadIdx.x;
  out[i] = ffma<4>(i * 1e-6f, kIters);
  __syncthreads();
  if constexpr (kClocked) if (threadIdx.x == 0) { r.c1 = cyc(); r.t1 = ns(); rec[blockIdx.x] = r; }
}
int main() {
  float* out; Rec* rec;
  CK(cudaMalloc(&out, kGrid * kBlock * 4)); CK(cudaMalloc(&rec, sizeof(Rec) * kGrid * kClock));
  CK(cudaFuncSetAttribute(tiles<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  CK(cudaFuncSetAttribute(tiles<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  for (int i = 0; i < kPlain + kClock; i++) {
    if (i < kPlain) tiles<false><<<kGrid, kBlock, kSmem>>>(out, nullptr);
    else tiles<true><<<kGrid, kBlock, kSmem>>>(out, rec + (i - kPlain) * kGrid);
  }
  CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  std::vector<Rec> r(kGrid * kClock); std::vector<float> o(kGrid * kBlock);
  CK(cudaMemcpy(r.data(), rec, r.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(o.data(), out, o.size() * 4, cudaMemcpyDeviceToHost));
  for (float f : o) if (!(std::fabs(f - 4.f) < 0.1f)) { std::printf("wrong %f\n", f); return 1; }
  std::vector<u64> begin, end; std::vector<double> busy, rate, waves, issue;
  for (int k = 0; k < kClock; k++) {
    u64 b = ~0ull, f = 0; double c = 0, t = 0;
    for (int i = 0; i < kGrid; i++) {
      Rec& q = r[k * kGrid + i]; b = std::min(b, q.t0); f = std::max(f, q.t1); c += q.c1 - q.c0; t += q.t1 - q.t0;
    }
    begin.push_back(b); end.push_back(f); busy.push_back(t); rate.push_back(c / t);
  }
  for (int k = 2; k + 1 < kClock; k++) {
    double whole = double(begin[k + 1] - begin[k]);
    waves.push_back((double(end[k] - begin[k]) - busy[k] / kSMs) / whole);
    issue.push_back(double(kGrid) * (kBlock / 32) * kIters * kPerIter / (4.0 * kSMs * whole * rate[k]));
  }
  std::printf("ok\nphases: {\"waves\": %.4f, \"issue\": %.4f}\n", median(waves), median(issue));
}
