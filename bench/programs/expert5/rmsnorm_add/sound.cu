// SPDX-License-Identifier: Apache-2.0
// Fused residual addition and RMS normalisation of transformer activations, one block a token.
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
namespace rms {

template <typename T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };

template <int WARPS>
__device__ __forceinline__ float block_sum(float v, float* part) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  float s = 0.0f;
#pragma unroll
  for (int w = 0; w < WARPS; ++w) s += part[w];
  return s;
}

// residual += x; y = residual / rms(residual) * gain
template <typename T, int WIDTH, int THREADS>
__global__ void __launch_bounds__(THREADS)
rmsnorm_residual(const T* __restrict__ x, T* __restrict__ residual, const T* __restrict__ gain, T* __restrict__ y, float eps) {
  constexpr int N = 16 / sizeof(T), PER = WIDTH / (THREADS * N);
  static_assert(PER * THREADS * N == WIDTH, "the row must divide evenly");
  using P = Pack<T, N>;
  __shared__ float part[THREADS / 32];
  const size_t base = (size_t)blockIdx.x * (WIDTH / N) + threadIdx.x;
  P a[PER], b[PER];
#pragma unroll
  for (int i = 0; i < PER; ++i) {
    a[i] = reinterpret_cast<const P*>(x)[base + i * THREADS];
    b[i] = reinterpret_cast<const P*>(residual)[base + i * THREADS];
  }
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < PER; ++i) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      b[i].v[k] = T(static_cast<float>(a[i].v[k]) + static_cast<float>(b[i].v[k]));
      const float f = static_cast<float>(b[i].v[k]);
      sum = fmaf(f, f, sum);
    }
    reinterpret_cast<P*>(residual)[base + i * THREADS] = b[i];
  }
  const float scale = rsqrtf(block_sum<THREADS / 32>(sum, part) * (1.0f / WIDTH) + eps);
#pragma unroll
  for (int i = 0; i < PER; ++i) {
    const P g = reinterpret_cast<const P*>(gain)[threadIdx.x + i * THREADS];
    P o;
#pragma unroll
    for (int k = 0; k < N; ++k) o.v[k] = T(static_cast<float>(b[i].v[k]) * scale * static_cast<float>(g.v[k]));
    reinterpret_cast<P*>(y)[base + i * THREADS] = o;
  }
}

template <typename T>
bool launch(const T* x, T* residual, const T* gain, T* y, int rows, int width, float eps) {
  switch (width) {
    case 2048: rmsnorm_residual<T, 2048, 128><<<rows, 128>>>(x, residual, gain, y, eps); return true;
    case 4096: rmsnorm_residual<T, 4096, 256><<<rows, 256>>>(x, residual, gain, y, eps); return true;
    case 8192: rmsnorm_residual<T, 8192, 512><<<rows, 512>>>(x, residual, gain, y, eps); return true;
    default: return false;
  }
}

}  // namespace rms

int main() {
  using T = __nv_bfloat16;
  const int rows = 16384, width = 4096, steps = 105;
  const size_t count = (size_t)rows * width;
  std::vector<T> hx(count), hr(count), hg(width), hy(count), hn(count);
  uint32_t seed = 13;
  for (auto& v : hx) v = T(next_unit(seed) * 0.01f);
  for (auto& v : hr) v = T(next_unit(seed));
  for (auto& v : hg) v = T(1.0f + 0.1f * next_unit(seed));
  T *x, *r, *g, *y;
  CUDA_OK(cudaMalloc(&x, count * 2));
  CUDA_OK(cudaMalloc(&r, count * 2));
  CUDA_OK(cudaMalloc(&y, count * 2));
  CUDA_OK(cudaMalloc(&g, width * 2));
  CUDA_OK(cudaMemcpy(x, hx.data(), count * 2, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(r, hr.data(), count * 2, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(g, hg.data(), width * 2, cudaMemcpyHostToDevice));
  bool ok = true;
  const float us = time_step([&] { ok = ok && rms::launch<T>(x, r, g, y, rows, width, 1e-6f); }, 5, steps - 5);
  if (!ok) {
    fprintf(stderr, "no kernel for this width\n");
    return 1;
  }
  CUDA_OK(cudaMemcpy(hn.data(), r, count * 2, cudaMemcpyDeviceToHost));
  CUDA_OK(cudaMemcpy(hy.data(), y, count * 2, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 100; ++t) {
    const int row = next_u32(seed) % rows;
    double sum = 0;
    std::vector<float> f(width);
    for (int c = 0; c < width; ++c) {
      const size_t i = (size_t)row * width + c;
      T v = hr[i];
      for (int s = 0; s < steps; ++s) v = T(float(hx[i]) + float(v));
      f[c] = float(v);
      if (f[c] != float(hn[i])) {
        fprintf(stderr, "wrong residual at %d,%d: %f, expected %f\n", row, c, float(hn[i]), f[c]);
        return 1;
      }
      sum += (double)f[c] * f[c];
    }
    const double scale = 1.0 / sqrt(sum / width + 1e-6);
    for (int c = 0; c < width; ++c) {
      const double want = f[c] * scale * float(hg[c]), got = float(hy[(size_t)row * width + c]);
      if (!(fabs(got - want) <= 1e-3 + 0.01 * fabs(want))) {
        fprintf(stderr, "wrong y at %d,%d: %f, expected %f\n", row, c, got, want);
        return 1;
      }
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}
