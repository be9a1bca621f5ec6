// SPDX-License-Identifier: Apache-2.0
// natural: sparse matrix times vector, one block a row; row 0 is far longer than the others: waves (one straggler block)
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
constexpr int kRows = 16 * kSMs, kBlock = 256, kShort = 8192, kLong = 640 * 1024, kCols = 1 << 20;
constexpr size_t kNnz = size_t(kRows - 1) * kShort + kLong;
struct Rec { u64 t0, t1; unsigned sm; };
template <bool kClocked> __global__ void __launch_bounds__(kBlock)
spmv(const int* ptr, const int* col, const float* val, const float* x, float* y, Rec* rec) {
  __shared__ float part[kBlock / 32];
  Rec r;
  if constexpr (kClocked) r.t0 = ns();
  float s = 0.f;
  for (int j = ptr[blockIdx.x] + threadIdx.x, e = ptr[blockIdx.x + 1]; j < e; j += kBlock) s += val[j] * x[col[j]];
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    s = 0.f;
    for (int w = 0; w < kBlock / 32; w++) s += part[w];
    y[blockIdx.x] = s;
    if constexpr (kClocked) { r.t1 = ns(); asm("mov.u32 %0, %%smid;" : "=r"(r.sm)); rec[blockIdx.x] = r; }
  }
}
__global__ void fill(int* col, float* val, float* x) {
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < kNnz; i += size_t(gridDim.x) * blockDim.x) {
    col[i] = (unsigned(i) * 2654435761u) >> 12;  // 20 bits
    val[i] = 0.5f;
    if (i < kCols) x[i] = 2.f;
  }
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
  int *ptr, *col; float *val, *x, *y; Rec* rec;
  CK(cudaMalloc(&ptr, (kRows + 1) * 4)); CK(cudaMalloc(&col, kNnz * 4)); CK(cudaMalloc(&val, kNnz * 4));
  CK(cudaMalloc(&x, kCols * 4)); CK(cudaMalloc(&y, kRows * 4)); CK(cudaMalloc(&rec, sizeof(Rec) * kRows * kClock));
  std::vector<int> p(kRows + 1, 0);
  for (int i = 0; i < kRows; i++) p[i + 1] = p[i] + (i == 0 ? kLong : kShort);
  CK(cudaMemcpy(ptr, p.data(), p.size() * 4, cudaMemcpyHostToDevice));
  fill<<<8 * kSMs, 256>>>(col, val, x); CK(cudaDeviceSynchronize());
  for (int i = 0; i < kPlain + kClock; i++) {
    if (i < kPlain) spmv<false><<<kRows, kBlock>>>(ptr, col, val, x, y, nullptr);
    else spmv<true><<<kRows, kBlock>>>(ptr, col, val, x, y, rec + (i - kPlain) * kRows);
  }
  CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  std::vector<Rec> r(kRows * kClock); std::vector<float> o(kRows);
  CK(cudaMemcpy(r.data(), rec, r.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(o.data(), y, o.size() * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kRows; i++) if (o[i] != float(i ? kShort : kLong)) { std::printf("wrong row %d: %f\n", i, o[i]); return 1; }
  std::vector<u64> begin, end; std::vector<double> work, waves;
  for (int k = 0; k < kClock; k++) {
    std::vector<Rec> v(r.begin() + k * kRows, r.begin() + (k + 1) * kRows);
    u64 b = ~0ull, f = 0;
    for (Rec& q : v) { b = std::min(b, q.t0); f = std::max(f, q.t1); }
    begin.push_back(b); end.push_back(f); work.push_back(busy(v));
  }
  for (int k = 2; k + 1 < kClock; k++)
    waves.push_back((double(end[k] - begin[k]) - work[k] / kSMs) / double(begin[k + 1] - begin[k]));
  std::printf("ok\nphases: {\"waves\": %.4f}\n", median(waves));
}
