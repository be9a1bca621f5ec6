// SPDX-License-Identifier: Apache-2.0
// Damped sparse matrix-vector iteration (CSR) as in a graph diffusion solver.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <algorithm>

#define CK(x)                                                                  \
  do {                                                                         \
    cudaError_t e_ = (x);                                                      \
    if (e_ != cudaSuccess) {                                                   \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__,                   \
                   cudaGetErrorString(e_));                                    \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

static uint32_t g_seed = 0x9E3779B9u;
static inline uint32_t rnd() {
  g_seed ^= g_seed << 13; g_seed ^= g_seed >> 17; g_seed ^= g_seed << 5;
  return g_seed;
}
[[maybe_unused]] static inline float frnd() { return (rnd() >> 8) * (1.0f / 16777216.0f); }

template <class F>
static float time_steps(int iters, F&& step) {
  for (int i = 0; i < 5; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  CK(cudaGetLastError());
  float ms = 0.f;
  CK(cudaEventElapsedTime(&ms, a, b));
  return ms * 1000.0f / iters;
}

namespace sparse {

struct Csr {
  const int* __restrict__ rowptr;
  const int* __restrict__ col;
  const float* __restrict__ val;
  int rows;
};

struct Damped {
  float alpha;
  const float* __restrict__ bias;
  __device__ __forceinline__ float operator()(int r, float s) const { return fmaf(alpha, s, __ldg(bias + r)); }
};
struct Plain {
  __device__ __forceinline__ float operator()(int, float s) const { return s; }
};

// LANES lanes share a row; the grid is persistent, two blocks to an SM.
template <int LANES, int THREADS, class Epilogue>
__global__ __launch_bounds__(THREADS, 2) void spmv_rows(Csr m, const float* __restrict__ x, float* __restrict__ y, Epilogue epi) {
  constexpr int kGroups = THREADS / LANES;
  const int group = threadIdx.x / LANES;
  const int lane = threadIdx.x % LANES;
  const int rounds = (m.rows + gridDim.x * kGroups - 1) / (gridDim.x * kGroups);
  for (int k = 0; k < rounds; ++k) {
    const int row = (blockIdx.x * rounds + k) * kGroups + group;
    float s0 = 0.f, s1 = 0.f;
    if (row < m.rows) {
      const int end = __ldg(m.rowptr + row + 1);
      int i = __ldg(m.rowptr + row) + lane;
      for (; i + 3 * LANES < end; i += 4 * LANES) {
        const int c0 = __ldcs(m.col + i), c1 = __ldcs(m.col + i + LANES);
        const int c2 = __ldcs(m.col + i + 2 * LANES), c3 = __ldcs(m.col + i + 3 * LANES);
        const float v0 = __ldcs(m.val + i), v1 = __ldcs(m.val + i + LANES);
        const float v2 = __ldcs(m.val + i + 2 * LANES), v3 = __ldcs(m.val + i + 3 * LANES);
        s0 = fmaf(v0, __ldg(x + c0), s0);
        s1 = fmaf(v1, __ldg(x + c1), s1);
        s0 = fmaf(v2, __ldg(x + c2), s0);
        s1 = fmaf(v3, __ldg(x + c3), s1);
      }
      for (; i < end; i += LANES) s0 = fmaf(__ldcs(m.val + i), __ldg(x + __ldcs(m.col + i)), s0);
    }
    s0 += s1;
#pragma unroll
    for (int d = LANES / 2; d; d >>= 1) s0 += __shfl_xor_sync(~0u, s0, d);
    if (lane == 0 && row < m.rows) y[row] = epi(row, s0);
  }
}

}  // namespace sparse

int main() {
  using namespace sparse;
  const int rows = 524288;
  std::vector<int> ptr(rows + 1, 0);
  for (int r = 0; r < rows; ++r) ptr[r + 1] = ptr[r] + 12 + int(500.0 * std::exp(-double(r) * 12.0 / rows)) + int(rnd() % 5);
  const int nnz = ptr[rows];
  std::vector<int> col(nnz);
  std::vector<float> val(nnz), x(rows), bias(rows);
  for (int r = 0; r < rows; ++r)
    for (int i = ptr[r]; i < ptr[r + 1]; ++i) {
      // communities: most neighbours lie near, some anywhere
      const uint32_t u = rnd();
      col[i] = (u & 7) ? int((r + (u >> 3) % 4096) % rows) : int((u >> 3) % rows);
      val[i] = frnd() - 0.5f;
    }
  for (auto& v : x) v = frnd();
  for (auto& v : bias) v = frnd();
  int *dptr, *dcol;
  float *dval, *dx, *dy, *dbias;
  CK(cudaMalloc(&dptr, (rows + 1) * 4));
  CK(cudaMalloc(&dcol, size_t(nnz) * 4));
  CK(cudaMalloc(&dval, size_t(nnz) * 4));
  CK(cudaMalloc(&dx, rows * 4));
  CK(cudaMalloc(&dy, rows * 4));
  CK(cudaMalloc(&dbias, rows * 4));
  CK(cudaMemcpy(dptr, ptr.data(), (rows + 1) * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dcol, col.data(), size_t(nnz) * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dval, val.data(), size_t(nnz) * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dx, x.data(), rows * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dbias, bias.data(), rows * 4, cudaMemcpyHostToDevice));
  const Csr m{dptr, dcol, dval, rows};
  const Damped damp{0.85f, dbias};
  spmv_rows<8, 1024, Plain><<<264, 1024>>>(m, dx, dy, Plain{});
  const float us = time_steps(60, [&] {
    spmv_rows<8, 1024, Damped><<<264, 1024>>>(m, dx, dy, damp);
  });
  std::vector<float> y(rows);
  CK(cudaMemcpy(y.data(), dy, rows * 4, cudaMemcpyDeviceToHost));
  for (int r = 0; r < rows; r += 37) {
    double s = 0;
    for (int i = ptr[r]; i < ptr[r + 1]; ++i) s += double(val[i]) * x[col[i]];
    s = s * damp.alpha + bias[r];
    if (std::fabs(s - y[r]) > 1e-3) {
      std::printf("mismatch in row %d: %f %f\n", r, s, y[r]);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
