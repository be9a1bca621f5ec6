// SPDX-License-Identifier: Apache-2.0
// three phases: warp 0 chases links in DRAM (wait:long_scoreboard, 1/4) while warps 1 to 3 wait (wait:barrier, 3/4); issue
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
constexpr int kBlock = 128, kRounds = 4, kSteps = 140, kIters = 1300, kPerIter = 68;  // kPerIter: SASS instructions of the loop body
constexpr size_t kSmem = 120 << 10;                                                  // one block per SM
struct Rec { u64 t0, t1, c0, c1, load; };
constexpr unsigned kMask = (1u << 27) - 1;  // 512 MiB of links, one cycle through all of them (a full-period LCG)
__global__ void links(unsigned* next) {
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i <= kMask; i += size_t(gridDim.x) * blockDim.x)
    next[i] = (unsigned(i) * 1664525u + 1013904223u) & kMask;
}
__device__ __forceinline__ unsigned chase(const unsigned* next, unsigned i, int n) {  // one dependent load from DRAM a step
#pragma unroll 4
  for (int k = 0; k < n; k++) i = next[i];
  return i;
}
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
template <bool kClocked> __global__ void __launch_bounds__(kBlock) rounds(const unsigned* next, float* out, unsigned seed, Rec* rec) {
  __shared__ float found;
  Rec r; r.load = 0;
  if constexpr (kClocked) { r.t0 = ns(); r.c0 = cyc(); }
  float s = 0.f;
  unsigned i = ((seed * kSMs + blockIdx.x) * 2654435761u) & kMask;
#pragma unroll 1
  for (int k = 0; k < kRounds; k++) {
    if (threadIdx.x < 32) {  // one warp of the four, so one scheduler of the four
      u64 c = 0;
      if constexpr (kClocked) c = cyc();
      i = chase(next, i, kSteps);
      found = float(i & 1023) * 1e-3f;
      if constexpr (kClocked) r.load += cyc() - c;
    }
    __syncthreads();
    s = ffma<8>(s * 0.125f + found, kIters);
    __syncthreads();
  }
  out[blockIdx.x * kBlock + threadIdx.x] = s;
  if constexpr (kClocked) if (threadIdx.x == 0) { r.c1 = cyc(); r.t1 = ns(); rec[blockIdx.x] = r; }
}
int main() {
  unsigned* next; float* out; Rec* rec;
  CK(cudaMalloc(&next, (size_t(kMask) + 1) * 4)); CK(cudaMalloc(&out, kSMs * kBlock * 4)); CK(cudaMalloc(&rec, sizeof(Rec) * kSMs * kClock));
  CK(cudaFuncSetAttribute(rounds<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  CK(cudaFuncSetAttribute(rounds<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  links<<<8 * kSMs, 256>>>(next); CK(cudaDeviceSynchronize());
  for (int i = 0; i < kPlain + kClock; i++) {
    if (i < kPlain) rounds<false><<<kSMs, kBlock, kSmem>>>(next, out, i, nullptr);
    else rounds<true><<<kSMs, kBlock, kSmem>>>(next, out, i, rec + (i - kPlain) * kSMs);
  }
  CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  std::vector<Rec> r(kSMs * kClock); std::vector<float> o(kSMs * kBlock);
  CK(cudaMemcpy(r.data(), rec, r.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(o.data(), out, o.size() * 4, cudaMemcpyDeviceToHost));
  for (float f : o) if (!(std::fabs(f - 8.f) < 0.1f)) { std::printf("wrong %f\n", f); return 1; }
  std::vector<u64> begin; std::vector<double> rate, load, barrier, lsb, issue;
  for (int k = 0; k < kClock; k++) {
    u64 b = ~0ull; double c = 0, t = 0, p = 0;
    for (int i = 0; i < kSMs; i++) {
      Rec& q = r[k * kSMs + i]; b = std::min(b, q.t0); c += q.c1 - q.c0; t += q.t1 - q.t0; p += double(q.load);
    }
    begin.push_back(b); rate.push_back(c / t); load.push_back(p / kSMs);
  }
  for (int k = 2; k + 1 < kClock; k++) {
    double whole = double(begin[k + 1] - begin[k]) * rate[k];  // in SM cycles
    barrier.push_back(0.75 * load[k] / whole); lsb.push_back(0.25 * load[k] / whole);
    issue.push_back(double(kRounds) * kIters * kPerIter / whole);
  }
  std::printf("ok\nphases: {\"wait:barrier\": %.4f, \"wait:long_scoreboard\": %.4f, \"issue\": %.4f}\n", median(barrier), median(lsb), median(issue));
}
