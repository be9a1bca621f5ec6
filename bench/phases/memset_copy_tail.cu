// SPDX-License-Identifier: Apache-2.0
// copies: a memset and a copy before each kernel; waves: 198 equal blocks, one per SM at a time (half a last wave)
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
constexpr int kBlock = 512, kGrid = kSMs + kSMs / 2, kIters = 1060;
constexpr size_t kSmem = 120 << 10, kClear = 512u << 20, kCopy = 128u << 20;  // kSmem: one block per SM
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
template <bool kClocked> __global__ void __launch_bounds__(kBlock) step(const float* in, float* acc, Rec* rec) {
  Rec r;
  if constexpr (kClocked) r.t0 = ns();
  int i = blockIdx.x * kBlock + threadIdx.x;
  acc[i] += ffma<4>(in[i] * 1e-3f, kIters);
  __syncthreads();
  if constexpr (kClocked) if (threadIdx.x == 0) { r.t1 = ns(); rec[blockIdx.x] = r; }
}
int main() {
  float *acc, *src, *in; Rec* rec; cudaStream_t s;
  CK(cudaMalloc(&acc, kClear)); CK(cudaMalloc(&src, kCopy)); CK(cudaMalloc(&in, kCopy)); CK(cudaMemset(src, 0, kCopy));
  CK(cudaMalloc(&rec, sizeof(Rec) * kGrid * kClock));
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CK(cudaFuncSetAttribute(step<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  CK(cudaFuncSetAttribute(step<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  CK(cudaDeviceSynchronize());
  for (int i = 0; i < kPlain + kClock; i++) {
    CK(cudaMemsetAsync(acc, 0, kClear, s));
    CK(cudaMemcpyAsync(in, src, kCopy, cudaMemcpyDeviceToDevice, s));
    if (i < kPlain) step<false><<<kGrid, kBlock, kSmem, s>>>(in, acc, nullptr);
    else step<true><<<kGrid, kBlock, kSmem, s>>>(in, acc, rec + (i - kPlain) * kGrid);
  }
  CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  std::vector<Rec> r(kGrid * kClock); std::vector<float> o(kGrid * kBlock);
  CK(cudaMemcpy(r.data(), rec, r.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(o.data(), acc, o.size() * 4, cudaMemcpyDeviceToHost));
  for (float f : o) if (!(std::fabs(f - 4.f) < 0.1f)) { std::printf("wrong %f\n", f); return 1; }
  std::vector<u64> begin, end; std::vector<double> busy, copies, waves;
  for (int k = 0; k < kClock; k++) {
    u64 b = ~0ull, f = 0; double t = 0;
    for (int i = 0; i < kGrid; i++) {
      Rec& q = r[k * kGrid + i]; b = std::min(b, q.t0); f = std::max(f, q.t1); t += double(q.t1 - q.t0);
    }
    begin.push_back(b); end.push_back(f); busy.push_back(t);
  }
  for (int k = 2; k + 1 < kClock; k++) {
    double whole = double(begin[k + 1] - begin[k]);
    copies.push_back(double(begin[k + 1] - end[k]) / whole);
    waves.push_back((double(end[k] - begin[k]) - busy[k] / kSMs) / whole);
  }
  std::printf("ok\nphases: {\"copies\": %.4f, \"waves\": %.4f}\n", median(copies), median(waves));
}
