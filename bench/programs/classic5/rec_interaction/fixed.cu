// SPDX-License-Identifier: Apache-2.0
// Pairwise dot-product feature interaction of a click-through-rate model: lower triangle of X X^T per sample.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CU_OK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
  std::fprintf(stderr, "%s -> %s\n", #x, cudaGetErrorString(e)); std::exit(2); } } while (0)

namespace ctr {

template <int kFeatures, int kDim>
struct Shape {
  static constexpr int features = kFeatures;
  static constexpr int dim = kDim;
  static constexpr int vecs = kDim / 4;
  static constexpr int pitch = vecs + 1;
  static constexpr int pairs = kFeatures * (kFeatures - 1) / 2;
};

__device__ __forceinline__ float dot4(float4 a, float4 b, float c) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, c))));
}

// One block a sample; a warp owns kRows features, a lane the partner feature.
template <typename S, int kRows>
__global__ void __launch_bounds__(S::features / kRows * 32) interact(const float4* __restrict__ x,
                                                                     float* __restrict__ out) {
  static_assert(S::features == 32, "a lane a feature");
  __shared__ float4 tile[S::features][S::pitch];
  const float4* sample = x + size_t(blockIdx.x) * S::features * S::vecs;
#pragma unroll
  for (int i = threadIdx.x; i < S::features * S::vecs; i += S::features / kRows * 32)
    tile[i / S::vecs][i % S::vecs] = sample[i];
  __syncthreads();
  const int lane = threadIdx.x & 31;
  const int row0 = (threadIdx.x >> 5) * kRows;
  float acc[kRows] = {};
#pragma unroll 4
  for (int k = 0; k < S::vecs; ++k) {
    const float4 mine = tile[lane][k];
#pragma unroll
    for (int r = 0; r < kRows; ++r) acc[r] = dot4(tile[row0 + r][k], mine, acc[r]);
  }
  float* dst = out + size_t(blockIdx.x) * S::pairs;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int i = row0 + r;
    if (lane < i) dst[i * (i - 1) / 2 + lane] = acc[r];
  }
}

}  // namespace ctr

int main() {
  using S = ctr::Shape<32, 64>;
  const int batch = 16384;
  const size_t in = size_t(batch) * S::features * S::dim, outn = size_t(batch) * S::pairs;
  std::vector<float> x(in);
  uint32_t s = 7;
  for (auto& v : x) {
    s = s * 1664525u + 1013904223u;
    v = float(int(s >> 16) - 32768) / 65536.0f;
  }
  float *dx, *dout;
  CU_OK(cudaMalloc(&dx, in * 4));
  CU_OK(cudaMalloc(&dout, outn * 4));
  CU_OK(cudaMemcpy(dx, x.data(), in * 4, cudaMemcpyHostToDevice));
  auto step = [&] { ctr::interact<S, 4><<<batch, 256>>>(reinterpret_cast<const float4*>(dx), dout); };
  for (int i = 0; i < 4; ++i) step();
  CU_OK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CU_OK(cudaEventCreate(&a));
  CU_OK(cudaEventCreate(&b));
  const int iters = 100;
  CU_OK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step();
  CU_OK(cudaEventRecord(b));
  CU_OK(cudaEventSynchronize(b));
  CU_OK(cudaGetLastError());
  float ms = 0;
  CU_OK(cudaEventElapsedTime(&ms, a, b));
  std::vector<float> got(outn);
  CU_OK(cudaMemcpy(got.data(), dout, outn * 4, cudaMemcpyDeviceToHost));
  for (int q = 0; q < batch; q += 131)
    for (int i = 1; i < S::features; ++i)
      for (int j = 0; j < i; ++j) {
        double want = 0;
        for (int k = 0; k < S::dim; ++k)
          want += double(x[(size_t(q) * S::features + i) * S::dim + k]) * x[(size_t(q) * S::features + j) * S::dim + k];
        const float g = got[size_t(q) * S::pairs + i * (i - 1) / 2 + j];
        if (!(std::fabs(g - want) < 1e-4)) {
          std::printf("sample %d pair %d,%d: %f, expected %f\n", q, i, j, g, want);
          return 1;
        }
      }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
