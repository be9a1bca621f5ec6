// SPDX-License-Identifier: Apache-2.0
// Cholesky factors of many small symmetric positive definite matrices, one warp a matrix, rows in registers.
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
namespace batched {

// a: batch x N x N symmetric; lt: batch x N x N, the transposed factor (row j holds column j of L).
template <int N, int WARPS, bool LOGDET>
__global__ void __launch_bounds__(WARPS * 32)
cholesky_kernel(const float* __restrict__ a, float* __restrict__ lt, float* __restrict__ logdet, int batch) {
  static_assert(N <= 32, "a lane holds one row");
  const int lane = threadIdx.x & 31;
  const int id = blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (id >= batch) return;
  const float* src = a + (size_t)id * N * N;
  float* dst = lt + (size_t)id * N * N;
  const int me = lane < N ? lane : N - 1;

  float row[N];
#pragma unroll
  for (int j = 0; j < N; ++j) row[j] = __ldcs(src + j * N + me);

  float det = 0.0f;
#pragma unroll 4
  for (int k = 0; k < N; ++k) {
    const float pivot = __shfl_sync(~0u, row[k], k);
    const float l = row[k] * rsqrtf(pivot);
    row[k] = me >= k ? l : 0.0f;
    if constexpr (LOGDET) det += __logf(pivot);
#pragma unroll
    for (int j = k + 1; j < N; ++j) row[j] = fmaf(-l, __shfl_sync(~0u, l, j), row[j]);
  }

#pragma unroll
  for (int j = 0; j < N; ++j)
    if (lane < N) __stcs(dst + j * N + lane, row[j]);
  if constexpr (LOGDET)
    if (lane == 0) logdet[id] = det;
}

template <int N, bool LOGDET>
void factor(const float* a, float* lt, float* logdet, int batch) {
  constexpr int WARPS = 4;
  cholesky_kernel<N, WARPS, LOGDET><<<(batch + WARPS - 1) / WARPS, WARPS * 32>>>(a, lt, logdet, batch);
}

}  // namespace batched

template <int N>
static int run(int batch) {
  std::vector<float> ha((size_t)batch * N * N), hl((size_t)batch * N * N), hd(batch);
  uint32_t seed = 3;
  for (int b = 0; b < batch; ++b) {
    float* m = ha.data() + (size_t)b * N * N;
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < i; ++j) m[i * N + j] = m[j * N + i] = next_unit(seed);
      m[i * N + i] = float(N) + next_unit(seed);
    }
  }
  float *a, *l, *d;
  CUDA_OK(cudaMalloc(&a, ha.size() * 4));
  CUDA_OK(cudaMalloc(&l, hl.size() * 4));
  CUDA_OK(cudaMalloc(&d, batch * 4));
  CUDA_OK(cudaMemcpy(a, ha.data(), ha.size() * 4, cudaMemcpyHostToDevice));
  const float us = time_step([&] { batched::factor<N, true>(a, l, d, batch); }, 5, 60);
  CUDA_OK(cudaMemcpy(hl.data(), l, hl.size() * 4, cudaMemcpyDeviceToHost));
  CUDA_OK(cudaMemcpy(hd.data(), d, batch * 4, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 200; ++t) {
    const int b = next_u32(seed) % batch;
    std::vector<double> f(N * N, 0.0);
    double det = 0;
    for (int j = 0; j < N; ++j)
      for (int i = j; i < N; ++i) {
        double s = ha[((size_t)b * N + i) * N + j];
        for (int k = 0; k < j; ++k) s -= f[i * N + k] * f[j * N + k];
        f[i * N + j] = i == j ? sqrt(s) : s / f[j * N + j];
        if (i == j) det += log(s);
        const double got = hl[((size_t)b * N + j) * N + i];
        if (!(fabs(got - f[i * N + j]) <= 2e-4)) {
          fprintf(stderr, "wrong factor %d at %d,%d: %f, expected %f\n", b, i, j, got, f[i * N + j]);
          return 1;
        }
      }
    if (!(fabs(hd[b] - det) <= 1e-2)) {
      fprintf(stderr, "wrong log-determinant %d: %f, expected %f\n", b, hd[b], det);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}

int main(int argc, char**) { return argc > 1 ? run<16>(65536) : run<32>(65536); }
