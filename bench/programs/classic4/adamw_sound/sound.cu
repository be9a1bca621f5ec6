// SPDX-License-Identifier: Apache-2.0
// Fused AdamW update of fp32 master weights from bf16 gradients, with a bf16 copy of the weights for the next step.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t e_ = (call);                                                         \
    if (e_ != cudaSuccess) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      return 1;                                                                      \
    }                                                                                \
  } while (0)

namespace optim {

struct Hyper {
  float lr, beta1, beta2, eps, decay, grad_scale;
};

template <bool DECOUPLED>
struct Adam {
  Hyper h;
  float step_size, inv_sqrt_bias2;
  __device__ __forceinline__ void operator()(float g, float& p, float& m, float& v) const {
    g *= h.grad_scale;
    if (!DECOUPLED) g = fmaf(h.decay, p, g);
    m = fmaf(h.beta1, m - g, g);
    v = fmaf(h.beta2, v - g * g, g * g);
    const float denom = fmaf(sqrtf(v), inv_sqrt_bias2, h.eps);
    if (DECOUPLED) p = fmaf(-h.lr * h.decay, p, p);
    p = fmaf(-step_size, __fdividef(m, denom), p);
  }
};

template <class Rule>
__global__ void __launch_bounds__(256)
    update(const uint2* __restrict__ grad, float4* __restrict__ weight, float4* __restrict__ first, float4* __restrict__ second,
           uint2* __restrict__ weight_bf16, Rule rule, int n4) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n4) return;
  const uint2 graw = __ldcs(grad + i);
  float4 p = weight[i], m = first[i], v = second[i];
  const float2 g01 = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(graw.x));
  const float2 g23 = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(graw.y));
  rule(g01.x, p.x, m.x, v.x);
  rule(g01.y, p.y, m.y, v.y);
  rule(g23.x, p.z, m.z, v.z);
  rule(g23.y, p.w, m.w, v.w);
  weight[i] = p;
  first[i] = m;
  second[i] = v;
  const __nv_bfloat162 lo = __floats2bfloat162_rn(p.x, p.y), hi = __floats2bfloat162_rn(p.z, p.w);
  weight_bf16[i] = make_uint2(reinterpret_cast<const uint32_t&>(lo), reinterpret_cast<const uint32_t&>(hi));
}

template <bool DECOUPLED>
Adam<DECOUPLED> make_rule(const Hyper& h, int t) {
  return {h, float(h.lr / (1.0 - std::pow(double(h.beta1), t))), float(1.0 / std::sqrt(1.0 - std::pow(double(h.beta2), t)))};
}

}  // namespace optim

int main(int argc, char**) {
  const int n = 1 << 25, n4 = n / 4;
  const optim::Hyper h{1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f, 0.5f};
  const bool coupled = argc > 1;
  std::vector<__nv_bfloat16> grad(n), copy(n);
  std::vector<float> weight(n), result(n);
  uint32_t s = 17u;
  auto uniform = [&] { s = s * 1664525u + 1013904223u; return (s >> 8) * (2.0f / 16777216.0f) - 1.0f; };
  for (int i = 0; i < n; ++i) {
    grad[i] = __float2bfloat16(0.1f * uniform());
    weight[i] = uniform();
  }
  __nv_bfloat16 *d_grad, *d_copy;
  float *d_weight, *d_first, *d_second;
  CK(cudaMalloc(&d_grad, n * sizeof(__nv_bfloat16)));
  CK(cudaMalloc(&d_copy, n * sizeof(__nv_bfloat16)));
  CK(cudaMalloc(&d_weight, n * sizeof(float)));
  CK(cudaMalloc(&d_first, n * sizeof(float)));
  CK(cudaMalloc(&d_second, n * sizeof(float)));
  CK(cudaMemcpy(d_grad, grad.data(), n * sizeof(__nv_bfloat16), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_weight, weight.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemset(d_first, 0, n * sizeof(float)));
  CK(cudaMemset(d_second, 0, n * sizeof(float)));

  int t = 0;
  auto launch = [&](auto rule) {
    optim::update<<<(n4 + 255) / 256, 256>>>(reinterpret_cast<uint2*>(d_grad), reinterpret_cast<float4*>(d_weight),
                                             reinterpret_cast<float4*>(d_first), reinterpret_cast<float4*>(d_second),
                                             reinterpret_cast<uint2*>(d_copy), rule, n4);
  };
  auto step = [&] {
    ++t;
    if (coupled) launch(optim::make_rule<false>(h, t));
    else launch(optim::make_rule<true>(h, t));
  };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 150;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(result.data(), d_weight, n * sizeof(float), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(copy.data(), d_copy, n * sizeof(__nv_bfloat16), cudaMemcpyDeviceToHost));

  for (int i = 0; i < n; i += 30011) {
    double p = weight[i], m = 0.0, v = 0.0;
    for (int k = 1; k <= t; ++k) {
      double g = double(__bfloat162float(grad[i])) * h.grad_scale;
      if (coupled) g += h.decay * p;
      m = h.beta1 * m + (1.0 - h.beta1) * g;
      v = h.beta2 * v + (1.0 - h.beta2) * g * g;
      if (!coupled) p -= h.lr * h.decay * p;
      p -= h.lr / (1.0 - std::pow(double(h.beta1), k)) * m / (std::sqrt(v / (1.0 - std::pow(double(h.beta2), k))) + h.eps);
    }
    const double tolerance = coupled ? 5e-2 : 1e-3;
    if (std::fabs(double(__bfloat162float(grad[i]))) < 1e-5) continue;
    if (!(std::fabs(result[i] - p) <= tolerance) || !(std::fabs(__bfloat162float(copy[i]) - result[i]) <= 0.005 * std::fabs(result[i]) + 1e-6)) {
      std::fprintf(stderr, "wrong weight %d: %g, not %g\n", i, result[i], p);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
