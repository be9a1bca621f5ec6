// SPDX-License-Identifier: Apache-2.0
// Dense matrix-vector product y = alpha * A * x + beta * y for a tall fp32 matrix, two rows a warp.
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_OK(x)                                                                         \
  do {                                                                                     \
    cudaError_t err_ = (x);                                                                \
    if (err_ != cudaSuccess) {                                                             \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_));        \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

static inline uint32_t next_u32(uint32_t& s) { s = s * 1664525u + 1013904223u; return s >> 8; }
static inline float next_unit(uint32_t& s) { return float(next_u32(s) & 0xffff) / 32768.0f - 1.0f; }

template <class Step>
static float time_step(Step&& step, int warmup, int iters) {
  cudaEvent_t beg, end;
  CUDA_OK(cudaEventCreate(&beg));
  CUDA_OK(cudaEventCreate(&end));
  for (int i = 0; i < warmup; ++i) step();
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaEventRecord(beg));
  for (int i = 0; i < iters; ++i) step();
  CUDA_OK(cudaEventRecord(end));
  CUDA_OK(cudaEventSynchronize(end));
  CUDA_OK(cudaGetLastError());
  float ms = 0.0f;
  CUDA_OK(cudaEventElapsedTime(&ms, beg, end));
  CUDA_OK(cudaEventDestroy(beg));
  CUDA_OK(cudaEventDestroy(end));
  return ms * 1000.0f / iters;
}
namespace blas2 {

__device__ __forceinline__ float dot4(const float4& a, const float4& b, float s) {
  s = fmaf(a.x, b.x, s);
  s = fmaf(a.y, b.y, s);
  s = fmaf(a.z, b.z, s);
  return fmaf(a.w, b.w, s);
}

template <int ROWS, int UNROLL, int WARPS, bool HAS_BETA>
__global__ void __launch_bounds__(WARPS * 32)
gemv_rows(const float4* __restrict__ a, const float4* __restrict__ x, float* __restrict__ y, int m, int quads, float alpha,
          float beta) {
  const int lane = threadIdx.x & 31;
  const int row = (blockIdx.x * WARPS + (threadIdx.x >> 5)) * ROWS;
  if (row >= m) return;
  const float4* src = a + (size_t)row * quads + lane;
  float acc[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) acc[r] = 0.0f;
  for (int q = 0; q < quads; q += UNROLL * 32) {
    float4 v[ROWS][UNROLL];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) v[r][u] = __ldcs(src + (size_t)r * quads + q + u * 32);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const float4 xv = __ldg(x + q + u * 32 + lane);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) acc[r] = dot4(v[r][u], xv, acc[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) acc[r] += __shfl_xor_sync(~0u, acc[r], o);
    if (lane == 0) {
      float v = alpha * acc[r];
      if constexpr (HAS_BETA) v = fmaf(beta, y[row + r], v);
      y[row + r] = v;
    }
  }
}

void gemv(const float* a, const float* x, float* y, int m, int n, float alpha, float beta) {
  constexpr int ROWS = 2, UNROLL = 4, WARPS = 8;
  const int blocks = (m + ROWS * WARPS - 1) / (ROWS * WARPS);
  const auto* av = reinterpret_cast<const float4*>(a);
  const auto* xv = reinterpret_cast<const float4*>(x);
  if (beta != 0.0f) gemv_rows<ROWS, UNROLL, WARPS, true><<<blocks, WARPS * 32>>>(av, xv, y, m, n / 4, alpha, beta);
  else gemv_rows<ROWS, UNROLL, WARPS, false><<<blocks, WARPS * 32>>>(av, xv, y, m, n / 4, alpha, beta);
}

}  // namespace blas2

int main(int argc, char**) {
  const int m = 65536, n = 4096;
  const float beta = argc > 1 ? 0.0f : 0.5f, alpha = 1.25f;
  const int warmup = 5, iters = 100;
  std::vector<float> ha((size_t)m * n), hx(n), hy(m);
  uint32_t seed = 2;
  for (auto& v : ha) v = next_unit(seed);
  for (auto& v : hx) v = next_unit(seed);
  float *a, *x, *y;
  CUDA_OK(cudaMalloc(&a, ha.size() * 4));
  CUDA_OK(cudaMalloc(&x, n * 4));
  CUDA_OK(cudaMalloc(&y, m * 4));
  CUDA_OK(cudaMemset(y, 0, m * 4));
  CUDA_OK(cudaMemcpy(a, ha.data(), ha.size() * 4, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(x, hx.data(), n * 4, cudaMemcpyHostToDevice));
  const float us = time_step([&] { blas2::gemv(a, x, y, m, n, alpha, beta); }, warmup, iters);
  CUDA_OK(cudaMemcpy(hy.data(), y, m * 4, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 300; ++t) {
    const int r = next_u32(seed) % m;
    double s = 0, want = 0;
    for (int c = 0; c < n; ++c) s += (double)ha[(size_t)r * n + c] * hx[c];
    for (int i = 0; i < warmup + iters; ++i) want = alpha * s + beta * want;
    if (!(fabs(hy[r] - want) <= 5e-3)) {
      fprintf(stderr, "wrong y[%d]: %f, expected %f\n", r, hy[r], want);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}
