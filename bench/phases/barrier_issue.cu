// SPDX-License-Identifier: Apache-2.0
// wait:barrier about 30 %, issue about 60 %: 32 warps of FFMA, then warp 0 alone
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
constexpr int kBlock = 1024, kRounds = 5, kAll = 250, kSerial = 350;
constexpr int kPerIter = 68, kPerIter1 = 67;  // SASS instructions of the two loops' bodies
constexpr size_t kSmem = 120 << 10;           // one block per SM
struct Rec { u64 t0, t1, c0, c1, serial; };
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
template <bool kClocked> __global__ void __launch_bounds__(kBlock) rounds(float* out, Rec* rec) {
  __shared__ float pivot[32];
  Rec r; r.serial = 0;
  if constexpr (kClocked) { r.t0 = ns(); r.c0 = cyc(); }
  float s = threadIdx.x * 1e-3f;
  for (int k = 0; k < kRounds; k++) {
    s = ffma<4>(s, kAll);
    __syncthreads();
    if (threadIdx.x < 32) {  // all other warps wait at the next barrier meanwhile
      u64 c = 0;
      if constexpr (kClocked) c = cyc();
      pivot[threadIdx.x] = ffma<1>(s, kSerial);
      if constexpr (kClocked) r.serial += cyc() - c;
    }
    __syncthreads();
    s += pivot[threadIdx.x % 32];
  }
  out[blockIdx.x * kBlock + threadIdx.x] = s;
  __syncthreads();
  if constexpr (kClocked) if (threadIdx.x == 0) { r.c1 = cyc(); r.t1 = ns(); rec[blockIdx.x] = r; }
}
int main() {
  float* out; Rec* rec;
  CK(cudaMalloc(&out, kSMs * kBlock * 4)); CK(cudaMalloc(&rec, sizeof(Rec) * kSMs * kClock));
  CK(cudaFuncSetAttribute(rounds<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  CK(cudaFuncSetAttribute(rounds<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  for (int i = 0; i < kPlain + kClock; i++) {
    if (i < kPlain) rounds<false><<<kSMs, kBlock, kSmem>>>(out, nullptr);
    else rounds<true><<<kSMs, kBlock, kSmem>>>(out, rec + (i - kPlain) * kSMs);
  }
  CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  std::vector<Rec> r(kSMs * kClock); std::vector<float> o(kSMs * kBlock);
  CK(cudaMemcpy(r.data(), rec, r.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(o.data(), out, o.size() * 4, cudaMemcpyDeviceToHost));
  // About 5.43: the four chains of the last round have not quite reached their limit of 4.
  for (float f : o) if (!(std::fabs(f - 5.43f) < 0.3f)) { std::printf("wrong %f\n", f); return 1; }
  std::vector<u64> begin; std::vector<double> rate, serial, barrier, issue;
  for (int k = 0; k < kClock; k++) {
    u64 b = ~0ull; double c = 0, t = 0, p = 0;
    for (int i = 0; i < kSMs; i++) {
      Rec& q = r[k * kSMs + i]; b = std::min(b, q.t0); c += q.c1 - q.c0; t += q.t1 - q.t0; p += double(q.serial);
    }
    begin.push_back(b); rate.push_back(c / t); serial.push_back(p / kSMs);
  }
  for (int k = 2; k + 1 < kClock; k++) {
    double whole = double(begin[k + 1] - begin[k]) * rate[k];  // in SM cycles
    barrier.push_back(0.75 * serial[k] / whole);
    issue.push_back(double(kRounds) * (double(kAll) * kPerIter * (kBlock / 32) + double(kSerial) * kPerIter1) / (4 * whole));
  }
  std::printf("ok\nphases: {\"wait:barrier\": %.4f, \"issue\": %.4f}\n", median(barrier), median(issue));
}
