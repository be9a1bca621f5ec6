// SPDX-License-Identifier: Apache-2.0
// gaps: one kernel, then a chain of empty dependencies through two streams, all enqueued ahead; + issue
#include <algorithm>
#include <chrono>
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
constexpr int kBlock = 1024, kIters = 850, kHops = 40, kPerIter = 67;  // kPerIter: SASS instructions of the loop body
constexpr size_t kSmem = 120 << 10;                                    // one block per SM
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
template <bool kClocked> __global__ void __launch_bounds__(kBlock) step(float* out, Rec* rec) {
  Rec r;
  if constexpr (kClocked) { r.t0 = ns(); r.c0 = cyc(); }
  float s = ffma<4>(threadIdx.x * 1e-3f, kIters);
  out[blockIdx.x * kBlock + threadIdx.x] = s;
  __syncthreads();
  if constexpr (kClocked) if (threadIdx.x == 0) { r.c1 = cyc(); r.t1 = ns(); rec[blockIdx.x] = r; }
}
int main() {
  float* out; Rec* rec; cudaStream_t s[2]; cudaEvent_t e[kHops];
  CK(cudaMalloc(&out, kSMs * kBlock * 4)); CK(cudaMalloc(&rec, sizeof(Rec) * kSMs * kClock));
  for (auto& x : s) CK(cudaStreamCreateWithFlags(&x, cudaStreamNonBlocking));
  for (auto& x : e) CK(cudaEventCreateWithFlags(&x, cudaEventDisableTiming));
  CK(cudaFuncSetAttribute(step<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  CK(cudaFuncSetAttribute(step<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  for (int i = 0; i < kPlain + kClock; i++) {
    if (i < kPlain) step<false><<<kSMs, kBlock, kSmem, s[0]>>>(out, nullptr);
    else step<true><<<kSMs, kBlock, kSmem, s[0]>>>(out, rec + (i - kPlain) * kSMs);
    for (int h = 0; h < kHops; h++) {  // an even number: ends on s[0]
      CK(cudaEventRecord(e[h], s[h & 1]));
      CK(cudaStreamWaitEvent(s[1 - (h & 1)], e[h], 0));
    }
  }
  auto enqueued = std::chrono::steady_clock::now();
  CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  double ahead = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - enqueued).count();
  if (ahead < 500) { std::printf("the host was only %.0f us ahead: these would be no gaps\n", ahead); return 1; }
  std::vector<Rec> r(kSMs * kClock); std::vector<float> o(kSMs * kBlock);
  CK(cudaMemcpy(r.data(), rec, r.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(o.data(), out, o.size() * 4, cudaMemcpyDeviceToHost));
  for (float f : o) if (!(std::fabs(f - 4.f) < 0.1f)) { std::printf("wrong %f\n", f); return 1; }
  std::vector<double> begin, end, gaps, issue;
  for (int k = 0; k < kClock; k++) {
    u64 b = ~0ull, f = 0;
    for (int i = 0; i < kSMs; i++) { b = std::min(b, r[k * kSMs + i].t0); f = std::max(f, r[k * kSMs + i].t1); }
    begin.push_back(double(b - r[0].t0 + 1000000)); end.push_back(double(f - r[0].t0 + 1000000));
  }
  for (int k = 2; k + 1 < kClock; k++) {
    double whole = begin[k + 1] - begin[k], c = 0, t = 0;
    for (int i = 0; i < kSMs; i++) { Rec& x = r[k * kSMs + i]; c += x.c1 - x.c0; t += x.t1 - x.t0; }
    gaps.push_back((begin[k + 1] - end[k]) / whole);
    issue.push_back(double(kIters) * kPerIter * (kBlock / 32) / 4 / (whole * c / t));
  }
  std::printf("ok\nphases: {\"gaps\": %.4f, \"issue\": %.4f}\n", median(gaps), median(issue));
}
