// SPDX-License-Identifier: Apache-2.0
// gaps between a producer (100 blocks: waves) and a consumer in two streams, through a chain of dependencies
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
constexpr int kBlock = 512, kIters = 1060, kHops = 21, kA = 100, kB = kSMs, kAll = kA + kB;
constexpr size_t kSmem = 120 << 10;  // one block per SM
struct Rec { u64 t0, t1; };
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
template <bool kClocked> __global__ void __launch_bounds__(kBlock) stage(const float* in, float* out, Rec* rec) {
  Rec r;
  if constexpr (kClocked) r.t0 = ns();
  float s = ffma<4>(in[threadIdx.x] * 1e-3f, kIters);
  out[blockIdx.x * kBlock + threadIdx.x] = s;
  __syncthreads();
  if constexpr (kClocked) if (threadIdx.x == 0) { r.t1 = ns(); rec[blockIdx.x] = r; }
}
int main() {
  float *x, *y; Rec* rec; cudaStream_t s[2]; cudaEvent_t e[2 * kHops];
  CK(cudaMalloc(&x, kSMs * kBlock * 4)); CK(cudaMalloc(&y, kSMs * kBlock * 4));
  CK(cudaMemset(x, 0, kSMs * kBlock * 4)); CK(cudaMalloc(&rec, sizeof(Rec) * kAll * kClock));
  for (auto& q : s) CK(cudaStreamCreateWithFlags(&q, cudaStreamNonBlocking));
  for (auto& q : e) CK(cudaEventCreateWithFlags(&q, cudaEventDisableTiming));
  CK(cudaFuncSetAttribute(stage<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  CK(cudaFuncSetAttribute(stage<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  CK(cudaDeviceSynchronize());
  auto hop = [&](int from, int base) {  // an odd number of hops: ends on the other stream
    for (int h = 0; h < kHops; h++) {
      int a = (from + h) & 1;
      CK(cudaEventRecord(e[base + h], s[a])); CK(cudaStreamWaitEvent(s[1 - a], e[base + h], 0));
    }
  };
  for (int i = 0; i < kPlain + kClock; i++) {
    Rec* q = rec + std::max(0, i - kPlain) * kAll;
    if (i < kPlain) stage<false><<<kA, kBlock, kSmem, s[0]>>>(x, y, nullptr);
    else stage<true><<<kA, kBlock, kSmem, s[0]>>>(x, y, q);
    hop(0, 0);
    if (i < kPlain) stage<false><<<kB, kBlock, kSmem, s[1]>>>(y, x, nullptr);
    else stage<true><<<kB, kBlock, kSmem, s[1]>>>(y, x, q + kA);
    hop(1, kHops);
  }
  auto enqueued = std::chrono::steady_clock::now();
  CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  double ahead = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - enqueued).count();
  if (ahead < 500) { std::printf("the host was only %.0f us ahead: these would be no gaps\n", ahead); return 1; }
  std::vector<Rec> r(kAll * kClock); std::vector<float> o(kSMs * kBlock);
  CK(cudaMemcpy(r.data(), rec, r.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(o.data(), x, o.size() * 4, cudaMemcpyDeviceToHost));
  for (float f : o) if (!(std::fabs(f - 4.f) < 0.1f)) { std::printf("wrong %f\n", f); return 1; }
  std::vector<double> gaps, waves;
  auto span = [&](int k, int at, int n, double* busy) {  // first begin, last end of one kernel
    u64 b = ~0ull, f = 0; *busy = 0;
    for (int i = at; i < at + n; i++) {
      Rec& q = r[k * kAll + i]; b = std::min(b, q.t0); f = std::max(f, q.t1); *busy += double(q.t1 - q.t0);
    }
    return std::make_pair(b, f);
  };
  for (int k = 2; k + 1 < kClock; k++) {
    double ba, bb, bn;
    auto a = span(k, 0, kA, &ba), b = span(k, kA, kB, &bb), n = span(k + 1, 0, kA, &bn);
    double whole = double(n.first - a.first), ka = double(a.second - a.first), kb = double(b.second - b.first);
    gaps.push_back((whole - ka - kb) / whole);
    waves.push_back((ka + kb - (ba + bb) / kSMs) / whole);
  }
  std::printf("ok\nphases: {\"gaps\": %.4f, \"waves\": %.4f}\n", median(gaps), median(waves));
}
