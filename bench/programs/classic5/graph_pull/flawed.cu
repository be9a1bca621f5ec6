// SPDX-License-Identifier: Apache-2.0
// Personalised PageRank sweep (pull form, CSR of in-edges, vertices renumbered by descending degree).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define GPU(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  std::fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

namespace graph {

struct Csr {
  const int* offset;
  const int* source;
  int vertices;
};

struct Damped {
  float damping, teleport;
  __host__ __device__ float operator()(float sum, float restart) const { return teleport * restart + damping * sum; }
};

template <typename T>
__device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

template <int kWarps, typename Update>
__global__ void __launch_bounds__(kWarps * 32) pull_sweep(Csr g, const float* __restrict__ contrib,
                                                          const float* __restrict__ restart, Update update,
                                                          float* __restrict__ rank) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int share = (g.vertices + gridDim.x - 1) / gridDim.x;
  const int first = blockIdx.x * share + warp;
  const int last = min(g.vertices, int(blockIdx.x + 1) * share);
  const int hop = kWarps;
  for (int v = first; v < last; v += hop) {
    const int end = g.offset[v + 1];
    float sum = 0.0f;
#pragma unroll 4
    for (int e = g.offset[v] + lane; e < end; e += 32) sum += contrib[g.source[e]];
    sum = warp_sum(sum);
    if (lane == 0) rank[v] = update(sum, restart[v]);
  }
}

__global__ void scale_by_degree(const float* __restrict__ rank, const float* __restrict__ inv_degree, int n,
                                float* __restrict__ contrib) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < n) contrib[v] = rank[v] * inv_degree[v];
}

}  // namespace graph

int main() {
  const int n = 1 << 20;
  std::vector<int> off(n + 1);
  uint64_t s = 0x123456789abcdefull;
  auto rnd = [&s] { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return uint32_t(s >> 24); };
  for (int v = 0; v < n; ++v) off[v + 1] = off[v] + 12 + int(3.0e6 / (v + 2000.0));
  const int m = off[n];
  std::vector<int> src(m);
  for (int e = 0; e < m; ++e) src[e] = rnd() & (n - 1);
  std::vector<float> restart(n), invdeg(n), rank0(n);
  for (int v = 0; v < n; ++v) {
    restart[v] = float(rnd() & 1023) / 1024.0f;
    invdeg[v] = 1.0f / (8 + rnd() % 64);
    rank0[v] = 1.0f;
  }
  int *doff, *dsrc;
  float *drestart, *dinv, *drank, *dcontrib;
  GPU(cudaMalloc(&doff, (n + 1) * sizeof(int)));
  GPU(cudaMalloc(&dsrc, size_t(m) * sizeof(int)));
  GPU(cudaMalloc(&drestart, n * 4));
  GPU(cudaMalloc(&dinv, n * 4));
  GPU(cudaMalloc(&drank, n * 4));
  GPU(cudaMalloc(&dcontrib, n * 4));
  GPU(cudaMemcpy(doff, off.data(), (n + 1) * sizeof(int), cudaMemcpyHostToDevice));
  GPU(cudaMemcpy(dsrc, src.data(), size_t(m) * sizeof(int), cudaMemcpyHostToDevice));
  GPU(cudaMemcpy(drestart, restart.data(), n * 4, cudaMemcpyHostToDevice));
  GPU(cudaMemcpy(dinv, invdeg.data(), n * 4, cudaMemcpyHostToDevice));
  GPU(cudaMemcpy(drank, rank0.data(), n * 4, cudaMemcpyHostToDevice));
  int sms = 0;
  GPU(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const graph::Csr g{doff, dsrc, n};
  const graph::Damped update{0.85f, 0.15f};
  auto step = [&] {
    graph::scale_by_degree<<<n / 256, 256>>>(drank, dinv, n, dcontrib);
    graph::pull_sweep<8><<<sms * 8, 256>>>(g, dcontrib, drestart, update, drank);
  };
  for (int i = 0; i < 3; ++i) step();
  GPU(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  GPU(cudaEventCreate(&a));
  GPU(cudaEventCreate(&b));
  const int iters = 60;
  GPU(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step();
  GPU(cudaEventRecord(b));
  GPU(cudaEventSynchronize(b));
  GPU(cudaGetLastError());
  float ms = 0;
  GPU(cudaEventElapsedTime(&ms, a, b));
  std::vector<float> rank(n), contrib(n);
  GPU(cudaMemcpy(rank.data(), drank, n * 4, cudaMemcpyDeviceToHost));
  GPU(cudaMemcpy(contrib.data(), dcontrib, n * 4, cudaMemcpyDeviceToHost));
  for (int v = 0; v < n; v += 331) {
    double sum = 0;
    for (int e = off[v]; e < off[v + 1]; ++e) sum += contrib[src[e]];
    const double want = 0.15 * restart[v] + 0.85 * sum;
    if (!(std::fabs(rank[v] - want) <= 1e-4 * std::fabs(want) + 1e-6)) {
      std::printf("vertex %d: %g, expected %g\n", v, rank[v], want);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
