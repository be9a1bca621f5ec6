// SPDX-License-Identifier: Apache-2.0
// Ungapped extension scores of protein seed hits: best segment of each 64-residue query/subject window.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
  std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e)); std::exit(2); } } while (0)

namespace blastp {

constexpr int kAlphabet = 24;

__constant__ int8_t substitution[kAlphabet * kAlphabet];

struct Segment {
  int run = 0, best = 0;
  __device__ __forceinline__ void push(int s) {
    run = max(run + s, 0);
    best = max(best, run);
  }
};

template <int kChunks, bool kThreshold>
__global__ void __launch_bounds__(256) extend_hits(const uint4* __restrict__ query,
                                                   const uint4* __restrict__ subject,
                                                   int hits, int cutoff, int* __restrict__ score) {
  const int hit = blockIdx.x * blockDim.x + threadIdx.x;
  if (hit >= hits) return;
  Segment seg;
#pragma unroll 1
  for (int c = 0; c < kChunks; ++c) {
    const uint4 q = query[size_t(c) * hits + hit];
    const uint4 t = subject[size_t(c) * hits + hit];
    const uint32_t qw[4] = {q.x, q.y, q.z, q.w};
    const uint32_t tw[4] = {t.x, t.y, t.z, t.w};
#pragma unroll
    for (int w = 0; w < 4; ++w)
#pragma unroll
      for (int b = 0; b < 32; b += 8) {
        const unsigned a = (qw[w] >> b) & 0xffu;
        const unsigned r = (tw[w] >> b) & 0xffu;
        seg.push(substitution[a * kAlphabet + r]);
      }
  }
  score[hit] = (!kThreshold || seg.best >= cutoff) ? seg.best : 0;
}

}  // namespace blastp

int main() {
  constexpr int kChunks = 4;
  const int hits = 2 << 20, cutoff = 18;
  const size_t bytes = size_t(hits) * kChunks * 16;
  std::vector<uint8_t> q(bytes), t(bytes);
  uint64_t s = 88172645463325252ull;
  auto rnd = [&s] { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return uint32_t(s >> 20); };
  for (size_t i = 0; i < bytes; ++i) {
    const uint32_t u = rnd();
    q[i] = (u & 0xffff) % 20;
    t[i] = (u >> 28) < 4 ? q[i] : ((u >> 12) & 0xffff) % 20;
  }
  int8_t m[blastp::kAlphabet * blastp::kAlphabet];
  for (int a = 0; a < blastp::kAlphabet; ++a)
    for (int b = 0; b <= a; ++b) {
      const int v = a == b ? 4 + (a * 7) % 6 : -4 + int((a * 31 + b * 17) % 6);
      m[a * blastp::kAlphabet + b] = m[b * blastp::kAlphabet + a] = int8_t(v);
    }
  CK(cudaMemcpyToSymbol(blastp::substitution, m, sizeof(m)));
  uint4 *dq, *dt;
  int* ds;
  CK(cudaMalloc(&dq, bytes));
  CK(cudaMalloc(&dt, bytes));
  CK(cudaMalloc(&ds, hits * sizeof(int)));
  CK(cudaMemcpy(dq, q.data(), bytes, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dt, t.data(), bytes, cudaMemcpyHostToDevice));
  auto step = [&] { blastp::extend_hits<kChunks, true><<<(hits + 255) / 256, 256>>>(dq, dt, hits, cutoff, ds); };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 80;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms = 0;
  CK(cudaEventElapsedTime(&ms, e0, e1));
  std::vector<int> got(hits);
  CK(cudaMemcpy(got.data(), ds, hits * sizeof(int), cudaMemcpyDeviceToHost));
  for (int h = 0; h < hits; h += 397) {
    int run = 0, best = 0;
    for (int c = 0; c < kChunks; ++c)
      for (int b = 0; b < 16; ++b) {
        const size_t at = (size_t(c) * hits + h) * 16 + b;
        run = std::max(run + int(m[q[at] * blastp::kAlphabet + t[at]]), 0);
        best = std::max(best, run);
      }
    if (best < cutoff) best = 0;
    if (best != got[h]) {
      std::printf("hit %d: %d, expected %d\n", h, got[h], best);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
