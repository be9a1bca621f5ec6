// SPDX-License-Identifier: Apache-2.0
// Galaxy clustering: for each object the numbers of later objects of the catalogue within each separation bin.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                        \
  do {                                                                                  \
    cudaError_t e_ = (x);                                                               \
    if (e_ != cudaSuccess) {                                                            \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));   \
      std::exit(2);                                                                     \
    }                                                                                   \
  } while (0)

namespace clustering {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;

template <int kBins>
struct Bins {
  float r2[kBins];   // ascending
};

// Separation in an open box, or along the line of sight only.
struct Euclid {
  __device__ static float r2(float4 a, float4 b) {
    const float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;
    return fmaf(x, x, fmaf(y, y, z * z));
  }
};
struct Projected {
  __device__ static float r2(float4 a, float4 b) {
    const float x = a.x - b.x, y = a.y - b.y;
    return fmaf(x, x, y * y);
  }
};

template <class Metric, int kBins, int kRows, bool kDiagonal>
__device__ __forceinline__ void count_tile(const float4 (&row)[kRows], int row0, const float4* tile,
                                           int col0, int warp, int lane, const Bins<kBins>& bins,
                                           int (&n)[kRows][kBins]) {
#pragma unroll 4
  for (int c = 0; c < kThreads / kWarps; ++c) {
    const int col = warp * (kThreads / kWarps) + c;
    const float4 b = tile[col];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float d = Metric::r2(row[r], b);
      const bool use = !kDiagonal || col0 + col > row0 + lane + 32 * r;
#pragma unroll
      for (int k = 0; k < kBins; ++k) n[r][k] += (use && d < bins.r2[k]);
    }
  }
}

// Persistent blocks of 32 warps. A row tile is 32 * kRows objects held by every warp of the block;
// the warps share the columns of a staged tile among them.
template <class Metric, int kBins, int kRows>
__global__ void __launch_bounds__(kThreads, 1)
count_pairs(const float4* __restrict__ pos, int n, Bins<kBins> bins, int* __restrict__ counts) {
  constexpr int kTile = 32 * kRows;
  __shared__ float4 cols[2][kThreads];
  __shared__ int sums[kTile][kBins];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const float4 far = make_float4(1e15f, 1e15f, 1e15f, 0.f);

  const int tiles = n / kTile;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int row0 = t * kTile;
    float4 row[kRows];
    int cnt[kRows][kBins];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      row[r] = pos[row0 + lane + 32 * r];
#pragma unroll
      for (int k = 0; k < kBins; ++k) cnt[r][k] = 0;
    }
    for (int i = threadIdx.x; i < kTile * kBins; i += kThreads) (&sums[0][0])[i] = 0;

    float4 next = row0 + int(threadIdx.x) < n ? pos[row0 + threadIdx.x] : far;
    int stage = 0;
    for (int col0 = row0; col0 < n; col0 += kThreads, stage ^= 1) {
      cols[stage][threadIdx.x] = next;
      __syncthreads();
      const int ahead = col0 + kThreads + threadIdx.x;
      next = ahead < n ? pos[ahead] : far;
      if (col0 == row0)
        count_tile<Metric, kBins, kRows, true>(row, row0, cols[stage], col0, warp, lane, bins, cnt);
      else
        count_tile<Metric, kBins, kRows, false>(row, row0, cols[stage], col0, warp, lane, bins, cnt);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int k = 0; k < kBins; ++k) atomicAdd(&sums[lane + 32 * r][k], cnt[r][k]);
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * kBins; i += kThreads)
      counts[row0 * kBins + i] = (&sums[0][0])[i];
    __syncthreads();
  }
}

}  // namespace clustering

int main(int argc, char**) {
  constexpr int kBins = 3, kRows = 2, N = 81920, kIters = 50;
  std::vector<float4> h(N);
  uint32_t st = 909u;
  auto uni = [&] {
    st = st * 1664525u + 1013904223u;
    return float(st >> 8) * (1.f / 16777216.f);
  };
  for (auto& p : h) {
    p.x = uni() * 100.f;
    p.y = uni() * 100.f;
    p.z = uni() * 100.f;
    p.w = 1.f;
  }
  const clustering::Bins<kBins> bins{{25.f, 100.f, 400.f}};
  float4* dp;
  int* dn;
  CHECK(cudaMalloc(&dp, N * sizeof(float4)));
  CHECK(cudaMalloc(&dn, N * kBins * sizeof(int)));
  CHECK(cudaMemcpy(dp, h.data(), N * sizeof(float4), cudaMemcpyHostToDevice));
  int sms = 0;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const bool projected = argc > 1;
  auto step = [&] {
    if (projected)
      clustering::count_pairs<clustering::Projected, kBins, kRows><<<sms, clustering::kThreads>>>(dp, N, bins, dn);
    else
      clustering::count_pairs<clustering::Euclid, kBins, kRows><<<sms, clustering::kThreads>>>(dp, N, bins, dn);
  };
  for (int i = 0; i < 3; ++i) step();
  cudaEvent_t e0, e1;
  CHECK(cudaEventCreate(&e0));
  CHECK(cudaEventCreate(&e1));
  CHECK(cudaEventRecord(e0));
  for (int i = 0; i < kIters; ++i) step();
  CHECK(cudaEventRecord(e1));
  CHECK(cudaEventSynchronize(e1));
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<int> got(N * kBins);
  CHECK(cudaMemcpy(got.data(), dn, got.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < N; i += 811) {
    int want[kBins] = {};
    for (int j = i + 1; j < N; ++j) {
      const double x = h[i].x - h[j].x, y = h[i].y - h[j].y, z = projected ? 0.f : h[i].z - h[j].z;
      const double d = x * x + y * y + z * z;
      for (int k = 0; k < kBins; ++k) want[k] += d < bins.r2[k];
    }
    for (int k = 0; k < kBins; ++k)
      if (std::abs(want[k] - got[i * kBins + k]) > 1) {
        std::fprintf(stderr, "wrong for object %d bin %d: %d, expected %d\n", i, k, got[i * kBins + k], want[k]);
        return 1;
      }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);
  return 0;
}
