// SPDX-License-Identifier: Apache-2.0
// natural: a sum over 128 Mi floats; the last block to finish adds the blocks' sums serially: waves
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
constexpr int kBlock = 256, kGrid = 32 * kSMs;
constexpr size_t kN = 128u << 20;
struct Rec { u64 t0, t1; unsigned sm; };
template <bool kClocked> __global__ void __launch_bounds__(kBlock)
total(const float4* in, double* part, unsigned* ticket, double* out, Rec* rec) {
  __shared__ double warp[kBlock / 32];
  Rec r;
  if constexpr (kClocked) r.t0 = ns();
  double s = 0;
  for (size_t i = size_t(blockIdx.x) * kBlock + threadIdx.x; i < kN / 4; i += size_t(kGrid) * kBlock) {
    float4 v = in[i];
    s += (v.x + v.y) + (v.z + v.w);
  }
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    s = 0;
    for (int w = 0; w < kBlock / 32; w++) s += warp[w];
    part[blockIdx.x] = s;
    __threadfence();
    if (atomicAdd(ticket, 1) == kGrid - 1) {  // the last block: Kahan's sum, in the blocks' order
      __threadfence();
      double sum = 0, lost = 0;
      for (int b = 0; b < kGrid; b++) {
        double y = __ldcg(&part[b]) - lost, t = sum + y;
        lost = (t - sum) - y; sum = t;
      }
      *out = sum; *ticket = 0;
    }
    if constexpr (kClocked) { r.t1 = ns(); asm("mov.u32 %0, %%smid;" : "=r"(r.sm)); rec[blockIdx.x] = r; }
  }
}
__global__ void fill(float* a) {
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < kN; i += size_t(gridDim.x) * blockDim.x) a[i] = float(i & 3);
}
// time with at least one resident block, summed over the SMs
static double busy(std::vector<Rec> v) {
  std::sort(v.begin(), v.end(), [](const Rec& a, const Rec& b) { return a.sm != b.sm ? a.sm < b.sm : a.t0 < b.t0; });
  double sum = 0; u64 upto = 0; unsigned sm = ~0u;
  for (const Rec& q : v) {
    if (q.sm != sm) { sm = q.sm; upto = 0; }
    if (q.t1 > upto) { sum += double(q.t1 - std::max(q.t0, upto)); upto = q.t1; }
  }
  return sum;
}
int main() {
  float* in; double *part, *out; unsigned* ticket; Rec* rec;
  CK(cudaMalloc(&in, kN * 4)); CK(cudaMalloc(&part, kGrid * 8)); CK(cudaMalloc(&out, 8)); CK(cudaMalloc(&ticket, 4));
  CK(cudaMemset(ticket, 0, 4)); CK(cudaMalloc(&rec, sizeof(Rec) * kGrid * kClock));
  fill<<<8 * kSMs, 256>>>(in); CK(cudaDeviceSynchronize());
  for (int i = 0; i < kPlain + kClock; i++) {
    if (i < kPlain) total<false><<<kGrid, kBlock>>>((float4*)in, part, ticket, out, nullptr);
    else total<true><<<kGrid, kBlock>>>((float4*)in, part, ticket, out, rec + (i - kPlain) * kGrid);
  }
  CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  std::vector<Rec> r(kGrid * kClock); double sum = 0;
  CK(cudaMemcpy(r.data(), rec, r.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(&sum, out, 8, cudaMemcpyDeviceToHost));
  if (sum != 1.5 * kN) { std::printf("wrong %f\n", sum); return 1; }
  std::vector<u64> begin, end; std::vector<double> work, waves;
  for (int k = 0; k < kClock; k++) {
    std::vector<Rec> v(r.begin() + k * kGrid, r.begin() + (k + 1) * kGrid);
    u64 b = ~0ull, f = 0;
    for (Rec& q : v) { b = std::min(b, q.t0); f = std::max(f, q.t1); }
    begin.push_back(b); end.push_back(f); work.push_back(busy(v));
  }
  for (int k = 2; k + 1 < kClock; k++)
    waves.push_back((double(end[k] - begin[k]) - work[k] / kSMs) / double(begin[k + 1] - begin[k]));
  std::printf("ok\nphases: {\"waves\": %.4f}\n", median(waves));
}
