// SPDX-License-Identifier: Apache-2.0
// AdamW optimiser step on fp32 master weights and moments with bf16 gradients and a bf16 weight copy.
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
namespace optim {

struct Hyper { float lr, beta1, beta2, eps, decay, corr1, corr2; };

template <typename G> struct Quad;
template <> struct Quad<__nv_bfloat16> {
  using type = uint2;
  __device__ static float4 load(uint2 v) {
    return make_float4(__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u), __uint_as_float(v.y << 16),
                       __uint_as_float(v.y & 0xffff0000u));
  }
  __device__ static uint2 store(float4 f) {
    const __nv_bfloat162 a = __floats2bfloat162_rn(f.x, f.y), b = __floats2bfloat162_rn(f.z, f.w);
    return make_uint2(*reinterpret_cast<const uint32_t*>(&a), *reinterpret_cast<const uint32_t*>(&b));
  }
};
template <> struct Quad<float> {
  using type = float4;
  __device__ static float4 load(float4 v) { return v; }
  __device__ static float4 store(float4 v) { return v; }
};

template <bool DECOUPLED>
__device__ __forceinline__ void update(float& p, float& m, float& v, float g, const Hyper& h) {
  if constexpr (!DECOUPLED) g = fmaf(h.decay, p, g);
  m = fmaf(h.beta1, m - g, g);
  v = fmaf(h.beta2, v - g * g, g * g);
  const float denom = sqrtf(v * h.corr2) + h.eps;
  float step = __fdividef(m * h.corr1, denom);
  if constexpr (DECOUPLED) step = fmaf(h.decay, p, step);
  p = fmaf(-h.lr, step, p);
}

template <typename G, bool DECOUPLED>
__global__ void __launch_bounds__(256)
adam_step(float4* __restrict__ p, float4* __restrict__ m, float4* __restrict__ v, const typename Quad<G>::type* __restrict__ g,
          typename Quad<G>::type* __restrict__ copy, size_t quads, Hyper h) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  const float4 gf = Quad<G>::load(__ldcs(g + i));
  float4 pf = __ldcs(p + i), mf = __ldcs(m + i), vf = __ldcs(v + i);
  update<DECOUPLED>(pf.x, mf.x, vf.x, gf.x, h);
  update<DECOUPLED>(pf.y, mf.y, vf.y, gf.y, h);
  update<DECOUPLED>(pf.z, mf.z, vf.z, gf.z, h);
  update<DECOUPLED>(pf.w, mf.w, vf.w, gf.w, h);
  __stcs(p + i, pf);
  __stcs(m + i, mf);
  __stcs(v + i, vf);
  __stcs(copy + i, Quad<G>::store(pf));
}

template <typename G, bool DECOUPLED>
void step(float* p, float* m, float* v, const void* g, void* copy, size_t n, const Hyper& h) {
  using Q = typename Quad<G>::type;
  const size_t quads = n / 4;
  adam_step<G, DECOUPLED><<<(unsigned)((quads + 255) / 256), 256>>>(
      reinterpret_cast<float4*>(p), reinterpret_cast<float4*>(m), reinterpret_cast<float4*>(v),
      static_cast<const Q*>(g), static_cast<Q*>(copy), quads, h);
}

}  // namespace optim

int main(int argc, char**) {
  const size_t n = (size_t)8192 * 4096;
  const int warmup = 3, iters = 60;
  const bool coupled = argc > 1;
  std::vector<float> hp(n), rp(n), rm(n);
  std::vector<__nv_bfloat16> hg(n), hc(n);
  uint32_t seed = 31;
  for (auto& v : hp) v = next_unit(seed);
  for (auto& v : hg) v = __float2bfloat16(next_unit(seed) * 0.1f);
  float *p, *m, *v;
  __nv_bfloat16 *g, *c;
  CUDA_OK(cudaMalloc(&p, n * 4));
  CUDA_OK(cudaMalloc(&m, n * 4));
  CUDA_OK(cudaMalloc(&v, n * 4));
  CUDA_OK(cudaMalloc(&g, n * 2));
  CUDA_OK(cudaMalloc(&c, n * 2));
  CUDA_OK(cudaMemset(m, 0, n * 4));
  CUDA_OK(cudaMemset(v, 0, n * 4));
  CUDA_OK(cudaMemcpy(p, hp.data(), n * 4, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(g, hg.data(), n * 2, cudaMemcpyHostToDevice));
  auto hyper = [](int t) {
    optim::Hyper h{1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.0f, 0.0f};
    h.corr1 = float(1.0 / (1.0 - pow(0.9, t)));
    h.corr2 = float(1.0 / (1.0 - pow(0.95, t)));
    return h;
  };
  int t = 0;
  const float us = time_step([&] {
    const optim::Hyper h = hyper(++t);
    if (coupled) optim::step<__nv_bfloat16, false>(p, m, v, g, c, n, h);
    else optim::step<__nv_bfloat16, true>(p, m, v, g, c, n, h);
  }, warmup, iters);
  CUDA_OK(cudaMemcpy(rp.data(), p, n * 4, cudaMemcpyDeviceToHost));
  CUDA_OK(cudaMemcpy(rm.data(), m, n * 4, cudaMemcpyDeviceToHost));
  CUDA_OK(cudaMemcpy(hc.data(), c, n * 2, cudaMemcpyDeviceToHost));
  for (int k = 0; k < 5000; ++k) {
    const size_t i = ((size_t)next_u32(seed) * 4099u + k) % n;
    double wp = hp[i], wm = 0, wv = 0;
    for (int s = 1; s <= warmup + iters; ++s) {
      const optim::Hyper h = hyper(s);
      double gr = __bfloat162float(hg[i]);
      if (coupled) gr += (double)h.decay * wp;
      wm = h.beta1 * wm + (1.0 - h.beta1) * gr;
      wv = h.beta2 * wv + (1.0 - h.beta2) * gr * gr;
      double st = wm * h.corr1 / (sqrt(wv * h.corr2) + h.eps);
      if (!coupled) st += (double)h.decay * wp;
      wp -= h.lr * st;
    }
    const double cp = __bfloat162float(hc[i]);
    if (!(fabs(rp[i] - wp) <= 1e-3) || !(fabs(rm[i] - wm) <= 1e-4) || !(fabs(cp - wp) <= 1e-3 + 0.01 * fabs(wp))) {
      fprintf(stderr, "wrong weight %zu: %f (copy %f), expected %f\n", i, rp[i], cp, wp);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}
