// SPDX-License-Identifier: Apache-2.0
// Filtered revenue sum over a columnar line-item table (date range, discount band, quantity limit).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
  std::fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(e)); std::exit(2); } } while (0)

namespace scan {

struct Columns {
  const int4* date;
  const int4* discount;
  const int4* quantity;
  const int4* price;
};

struct Predicate {
  int date_lo, date_hi, disc_lo, disc_hi, qty_max;
  __host__ __device__ bool operator()(int date, int disc, int qty) const {
    return date >= date_lo && date < date_hi && disc >= disc_lo && disc <= disc_hi && qty < qty_max;
  }
};

template <int kThreads, int kBlocksPerSm, typename Pred>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) revenue(Columns c, int packs, Pred keep,
                                                                  unsigned long long* __restrict__ result) {
  unsigned long long sum = 0;
  const int stride = gridDim.x * kThreads;
#pragma unroll 2
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < packs; i += stride) {
    const int4 d = __ldcs(c.date + i), s = __ldcs(c.discount + i), q = __ldcs(c.quantity + i), p = __ldcs(c.price + i);
    unsigned part = 0;
    part += keep(d.x, s.x, q.x) ? unsigned(p.x * s.x) : 0u;
    part += keep(d.y, s.y, q.y) ? unsigned(p.y * s.y) : 0u;
    part += keep(d.z, s.z, q.z) ? unsigned(p.z * s.z) : 0u;
    part += keep(d.w, s.w, q.w) ? unsigned(p.w * s.w) : 0u;
    sum += part;
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  __shared__ unsigned long long warp_sum[kThreads / 32];
  if ((threadIdx.x & 31) == 0) warp_sum[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kThreads / 32; ++w) sum += warp_sum[w];
    atomicAdd(result, sum);
  }
}

}  // namespace scan

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int blocks = sms * 4, threads = 256;
  const int packs = blocks * threads * 64;
  const size_t rows = size_t(packs) * 4;
  std::vector<int> date(rows), disc(rows), qty(rows), price(rows);
  uint64_t s = 99991;
  for (size_t i = 0; i < rows; ++i) {
    s ^= s << 13; s ^= s >> 7; s ^= s << 17;
    date[i] = int(s & 0xffff) % 2557;
    disc[i] = int((s >> 16) & 0xff) % 11;
    qty[i] = 1 + int((s >> 24) & 0xff) % 50;
    price[i] = 90000 + int((s >> 32) % 10000000);
  }
  const scan::Predicate keep{730, 1095, 5, 7, 24};
  unsigned long long want = 0;
  for (size_t i = 0; i < rows; ++i)
    if (keep(date[i], disc[i], qty[i])) want += (unsigned long long)(price[i] * disc[i]);
  auto up = [rows](const std::vector<int>& h) {
    int4* d;
    CK(cudaMalloc(&d, rows * 4));
    CK(cudaMemcpy(d, h.data(), rows * 4, cudaMemcpyHostToDevice));
    return d;
  };
  const scan::Columns cols{up(date), up(disc), up(qty), up(price)};
  const int warm = 3, iters = 100;
  unsigned long long* dres;
  CK(cudaMalloc(&dres, (warm + iters) * sizeof(*dres)));
  CK(cudaMemset(dres, 0, (warm + iters) * sizeof(*dres)));
  auto step = [&](int i) { scan::revenue<256, 4><<<blocks, threads>>>(cols, packs, keep, dres + i); };
  for (int i = 0; i < warm; ++i) step(i);
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step(warm + i);
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  CK(cudaGetLastError());
  float ms = 0;
  CK(cudaEventElapsedTime(&ms, a, b));
  std::vector<unsigned long long> got(warm + iters);
  CK(cudaMemcpy(got.data(), dres, got.size() * sizeof(got[0]), cudaMemcpyDeviceToHost));
  for (auto g : got)
    if (g != want) {
      std::printf("revenue %llu, expected %llu\n", g, want);
      return 1;
    }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
