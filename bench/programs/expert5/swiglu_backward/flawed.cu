// SPDX-License-Identifier: Apache-2.0
// Backward pass of the SwiGLU gate: gradients of gate and up projections from the gradient of their product.
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
namespace ffn {

template <typename T, int N>
struct Pack {
  T v[N];
};

struct SwiGlu {
  __device__ static void backward(float g, float u, float d, float& dg, float& du) {
    const float s = __fdividef(1.0f, 1.0f + __expf(-g));
    const float a = g * s;
    du = d * a;
    dg = d * u * (s + a * (1.0f - s));
  }
};
struct ReGlu {
  __device__ static void backward(float g, float u, float d, float& dg, float& du) {
    du = d * fmaxf(g, 0.0f);
    dg = g > 0.0f ? d * u : 0.0f;
  }
};

// gate, up, dout and both results: rows x width, in one allocation each.
template <typename T, int N, class Gate>
__global__ void __launch_bounds__(256)
gate_backward(const T* __restrict__ gate, const T* __restrict__ up, const T* __restrict__ dout, T* __restrict__ dgate,
              T* __restrict__ dup, size_t packs) {
  using P = Pack<T, N>;
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= packs) return;
  const P g = reinterpret_cast<const P*>(gate)[i];
  const P u = reinterpret_cast<const P*>(up)[i];
  const P d = reinterpret_cast<const P*>(dout)[i];
  P rg, ru;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    float dg, du;
    Gate::backward(static_cast<float>(g.v[k]), static_cast<float>(u.v[k]), static_cast<float>(d.v[k]), dg, du);
    rg.v[k] = T(dg);
    ru.v[k] = T(du);
  }
  reinterpret_cast<P*>(dgate)[i] = rg;
  reinterpret_cast<P*>(dup)[i] = ru;
}

template <typename T, class Gate>
void backward(const T* gate, const T* up, const T* dout, T* dgate, T* dup, size_t count) {
  constexpr int N = 16 / sizeof(T);
  const size_t packs = count / N;
  gate_backward<T, N, Gate><<<(unsigned)((packs + 255) / 256), 256>>>(gate, up, dout, dgate, dup, packs);
}

}  // namespace ffn

template <typename T, class Gate>
static int run(size_t count, bool swi) {
  std::vector<T> h[5];
  T* d[5];
  uint32_t seed = 77;
  for (int a = 0; a < 5; ++a) {
    h[a].resize(count);
    if (a < 3)
      for (auto& v : h[a]) v = T(next_unit(seed) * 3.0f);
    CUDA_OK(cudaMalloc(&d[a], count * sizeof(T)));
    if (a < 3) CUDA_OK(cudaMemcpy(d[a], h[a].data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  const float us = time_step([&] { ffn::backward<T, Gate>(d[0], d[1], d[2], d[3], d[4], count); }, 5, 100);
  for (int a = 3; a < 5; ++a) CUDA_OK(cudaMemcpy(h[a].data(), d[a], count * sizeof(T), cudaMemcpyDeviceToHost));
  for (int t = 0; t < 20000; ++t) {
    const size_t i = ((size_t)next_u32(seed) * 4099u + t) % count;
    const double g = float(h[0][i]), u = float(h[1][i]), o = float(h[2][i]);
    const double s = 1.0 / (1.0 + exp(-g));
    const double wg = swi ? o * u * (s + g * s * (1 - s)) : (g > 0 ? o * u : 0.0);
    const double wu = swi ? o * g * s : o * fmax(g, 0.0);
    if (!(fabs(float(h[3][i]) - wg) <= 1e-3 + 0.01 * fabs(wg)) || !(fabs(float(h[4][i]) - wu) <= 1e-3 + 0.01 * fabs(wu))) {
      fprintf(stderr, "wrong gradient at %zu: %f %f, expected %f %f\n", i, float(h[3][i]), float(h[4][i]), wg, wu);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}

int main(int argc, char**) {
  const size_t count = (size_t)4096 * 11008;
  if (argc > 1) return run<__half, ffn::ReGlu>(count, false);
  return run<__nv_bfloat16, ffn::SwiGlu>(count, true);
}
