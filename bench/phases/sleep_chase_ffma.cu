// SPDX-License-Identifier: Apache-2.0
// three phases: wait:sleep (__nanosleep), wait:long_scoreboard (links in DRAM), issue; one warp per scheduler
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
constexpr int kBlock = 128, kNaps = 10, kSteps = 400, kIters = 6000, kPerIter = 67;  // kPerIter: SASS instructions of the loop body
constexpr int kWarps = kSMs * kBlock / 32;                                           // = the schedulers of the GPU
constexpr size_t kSmem = 120 << 10;                                                  // one block per SM
struct Rec { u64 t0, t1, c0, c1, c2, c3; };
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
template <bool kClocked> __global__ void __launch_bounds__(kBlock) walk(const unsigned* next, float* out, unsigned seed, Rec* rec) {
  Rec r;
  if constexpr (kClocked) { r.t0 = ns(); r.c0 = cyc(); }
#pragma unroll 1
  for (int k = 0; k < kNaps; k++) __nanosleep(20000);
  if constexpr (kClocked) r.c1 = cyc();
  unsigned warp = blockIdx.x * (kBlock / 32) + threadIdx.x / 32;
  unsigned i = chase(next, ((seed * kWarps + warp) * 2654435761u) & kMask, kSteps);
  float x = float(i & 1023) * 1e-3f;
  if constexpr (kClocked) r.c2 = cyc();
  out[blockIdx.x * kBlock + threadIdx.x] = ffma<8>(x, kIters);
  if constexpr (kClocked) if (threadIdx.x % 32 == 0) { r.c3 = cyc(); r.t1 = ns(); rec[warp] = r; }
}
int main() {
  unsigned* next; float* out; Rec* rec;
  CK(cudaMalloc(&next, (size_t(kMask) + 1) * 4)); CK(cudaMalloc(&out, kSMs * kBlock * 4)); CK(cudaMalloc(&rec, sizeof(Rec) * kWarps * kClock));
  CK(cudaFuncSetAttribute(walk<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  CK(cudaFuncSetAttribute(walk<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  links<<<8 * kSMs, 256>>>(next); CK(cudaDeviceSynchronize());
  for (int i = 0; i < kPlain + kClock; i++) {
    if (i < kPlain) walk<false><<<kSMs, kBlock, kSmem>>>(next, out, i, nullptr);
    else walk<true><<<kSMs, kBlock, kSmem>>>(next, out, i, rec + (i - kPlain) * kWarps);
  }
  CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  std::vector<Rec> r(kWarps * kClock); std::vector<float> o(kSMs * kBlock);
  CK(cudaMemcpy(r.data(), rec, r.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(o.data(), out, o.size() * 4, cudaMemcpyDeviceToHost));
  for (float f : o) if (!(std::fabs(f - 8.f) < 0.1f)) { std::printf("wrong %f\n", f); return 1; }
  std::vector<u64> begin; std::vector<double> rate, nap, wait, sleep, lsb, issue;
  for (int k = 0; k < kClock; k++) {
    u64 b = ~0ull; double c = 0, t = 0, p = 0, s = 0;
    for (int i = 0; i < kWarps; i++) {
      Rec& q = r[k * kWarps + i]; b = std::min(b, q.t0); c += q.c3 - q.c0; t += q.t1 - q.t0; s += q.c1 - q.c0; p += q.c2 - q.c1;
    }
    begin.push_back(b); rate.push_back(c / t); nap.push_back(s / kWarps); wait.push_back(p / kWarps);
  }
  for (int k = 2; k + 1 < kClock; k++) {
    double whole = double(begin[k + 1] - begin[k]) * rate[k];  // in SM cycles
    sleep.push_back(nap[k] / whole); lsb.push_back(wait[k] / whole);
    issue.push_back(double(kIters) * kPerIter / whole);
  }
  std::printf("ok\nphases: {\"wait:sleep\": %.4f, \"wait:long_scoreboard\": %.4f, \"issue\": %.4f}\n", median(sleep), median(lsb), median(issue));
}
