// SPDX-License-Identifier: Apache-2.0
// GROUP BY over an order-line table: quantity sum, row count and average per product class.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CU(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

namespace olap {

struct Accumulators {
  unsigned long long* sum;
  unsigned* rows;
};

struct PriceBand {
  uint8_t low, high;
  __host__ __device__ bool operator()(uint8_t q) const { return q >= low && q <= high; }
};

template <int kGroups, bool kCountRows, typename Filter>
__global__ void __launch_bounds__(512) group_aggregate(const uint32_t* __restrict__ keys4,
                                                       const uint32_t* __restrict__ qty4,
                                                       size_t packs, Filter keep, Accumulators acc) {
  __shared__ unsigned block_sum[kGroups];
  __shared__ unsigned block_rows[kGroups];
  for (int g = threadIdx.x; g < kGroups; g += blockDim.x) {
    block_sum[g] = 0;
    block_rows[g] = 0;
  }
  __syncthreads();
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < packs; i += stride) {
    const uint32_t k = keys4[i];
    const uint32_t q = qty4[i];
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const unsigned group = (k >> (8 * b)) & 0xffu & (kGroups - 1);
      const uint8_t value = uint8_t(q >> (8 * b));
      if (keep(value)) {
        atomicAdd(&block_sum[group], unsigned(value));
        if (kCountRows) atomicAdd(&block_rows[group], 1u);
      }
    }
  }
  __syncthreads();
  for (int g = threadIdx.x; g < kGroups; g += blockDim.x) {
    atomicAdd(&acc.sum[g], (unsigned long long)block_sum[g]);
    if (kCountRows) atomicAdd(&acc.rows[g], block_rows[g]);
  }
}

template <int kGroups>
__global__ void finalize(Accumulators acc, unsigned long long* sum, unsigned* rows, float* avg) {
  const int g = threadIdx.x;
  if (g >= kGroups) return;
  const unsigned long long s = acc.sum[g];
  const unsigned c = acc.rows[g];
  sum[g] = s;
  rows[g] = c;
  avg[g] = c ? float(s) / float(c) : 0.0f;
  acc.sum[g] = 0;
  acc.rows[g] = 0;
}

}  // namespace olap

int main() {
  constexpr int kGroups = 256;
  const size_t rows = 32u << 20;
  const size_t packs = rows / 4;
  std::vector<uint32_t> keys(packs), qty(packs);
  uint64_t s = 0x9e3779b97f4a7c15ull;
  auto next = [&s]() { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return s; };
  for (size_t i = 0; i < packs; ++i) {
    const uint64_t r = next(), t = next();
    uint32_t kk = 0, qq = 0;
    for (int b = 0; b < 4; ++b) {
      const uint32_t u = (r >> (16 * b)) & 0xffff;
      kk |= ((u * (u >> 4)) >> 20 & 0xff) << (8 * b);
      qq |= uint32_t(1 + ((t >> (16 * b)) & 0xffff) % 50) << (8 * b);
    }
    keys[i] = kk;
    qty[i] = qq;
  }
  const olap::PriceBand band{3, 48};
  std::vector<unsigned long long> ref(kGroups, 0);
  std::vector<unsigned> refc(kGroups, 0);
  for (size_t i = 0; i < packs; ++i)
    for (int b = 0; b < 4; ++b) {
      const uint8_t v = uint8_t(qty[i] >> (8 * b));
      if (!band(v)) continue;
      ref[(keys[i] >> (8 * b)) & 0xff] += v;
      refc[(keys[i] >> (8 * b)) & 0xff] += 1;
    }

  uint32_t *dk, *dq;
  olap::Accumulators acc;
  unsigned long long* dsum;
  unsigned* drows;
  float* davg;
  CU(cudaMalloc(&dk, packs * 4));
  CU(cudaMalloc(&dq, packs * 4));
  CU(cudaMalloc(&acc.sum, kGroups * 8));
  CU(cudaMalloc(&acc.rows, kGroups * 4));
  CU(cudaMalloc(&dsum, kGroups * 8));
  CU(cudaMalloc(&drows, kGroups * 4));
  CU(cudaMalloc(&davg, kGroups * 4));
  CU(cudaMemcpy(dk, keys.data(), packs * 4, cudaMemcpyHostToDevice));
  CU(cudaMemcpy(dq, qty.data(), packs * 4, cudaMemcpyHostToDevice));
  CU(cudaMemset(acc.sum, 0, kGroups * 8));
  CU(cudaMemset(acc.rows, 0, kGroups * 4));
  int sms = 0;
  CU(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  auto step = [&] {
    olap::group_aggregate<kGroups, true><<<sms * 4, 512>>>(dk, dq, packs, band, acc);
    olap::finalize<kGroups><<<1, kGroups>>>(acc, dsum, drows, davg);
  };
  for (int i = 0; i < 3; ++i) step();
  CU(cudaDeviceSynchronize());
  cudaEvent_t a, z;
  CU(cudaEventCreate(&a));
  CU(cudaEventCreate(&z));
  const int iters = 100;
  CU(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step();
  CU(cudaEventRecord(z));
  CU(cudaEventSynchronize(z));
  CU(cudaGetLastError());
  float ms = 0;
  CU(cudaEventElapsedTime(&ms, a, z));
  std::vector<unsigned long long> hs(kGroups);
  std::vector<unsigned> hc(kGroups);
  std::vector<float> ha(kGroups);
  CU(cudaMemcpy(hs.data(), dsum, kGroups * 8, cudaMemcpyDeviceToHost));
  CU(cudaMemcpy(hc.data(), drows, kGroups * 4, cudaMemcpyDeviceToHost));
  CU(cudaMemcpy(ha.data(), davg, kGroups * 4, cudaMemcpyDeviceToHost));
  for (int g = 0; g < kGroups; ++g) {
    const float want = refc[g] ? float(ref[g]) / float(refc[g]) : 0.0f;
    if (hs[g] != ref[g] || hc[g] != refc[g] || std::fabs(ha[g] - want) > 1e-3f) {
      std::printf("mismatch in group %d\n", g);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
