// SPDX-License-Identifier: Apache-2.0
// AdamW step over the dense towers of a recommendation model (fp32 parameters, moments and gradients).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
  std::fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(e)); std::exit(2); } } while (0)

namespace optim {

struct Hyper {
  float lr, beta1, beta2, eps, decay, inv_bias1, inv_sqrt_bias2;
};

template <bool kDecoupled>
struct Adam {
  Hyper h;
  __host__ __device__ void operator()(float& p, float& m, float& v, float g) const {
    if (kDecoupled) p -= h.lr * h.decay * p;
    else g += h.decay * p;
    m = h.beta1 * m + (1.0f - h.beta1) * g;
    v = h.beta2 * v + (1.0f - h.beta2) * g * g;
    p -= h.lr * h.inv_bias1 * m / (sqrtf(v) * h.inv_sqrt_bias2 + h.eps);
  }
};

template <typename Rule>
__global__ void __launch_bounds__(256) apply(float4* __restrict__ p, float4* __restrict__ m, float4* __restrict__ v,
                                             const float4* __restrict__ g, int n4, Rule rule) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4) return;
  float4 pi = p[i], mi = m[i], vi = v[i];
  const float4 gi = __ldcs(g + i);
  rule(pi.x, mi.x, vi.x, gi.x);
  rule(pi.y, mi.y, vi.y, gi.y);
  rule(pi.z, mi.z, vi.z, gi.z);
  rule(pi.w, mi.w, vi.w, gi.w);
  p[i] = pi;
  m[i] = mi;
  v[i] = vi;
}

}  // namespace optim

int main() {
  const int n = 32 << 20, n4 = n / 4;
  std::vector<float> p(n), m(n), v(n), g(n);
  uint32_t s = 1;
  auto rnd = [&s] { s = s * 1664525u + 1013904223u; return float(int(s >> 9)) / 4194304.0f - 1.0f; };
  for (int i = 0; i < n; ++i) {
    p[i] = rnd();
    m[i] = 0.1f * rnd();
    v[i] = 0.01f + 0.005f * rnd();
    g[i] = 0.1f * rnd();
  }
  auto up = [n](const std::vector<float>& h) {
    float* d;
    CK(cudaMalloc(&d, size_t(n) * 4));
    CK(cudaMemcpy(d, h.data(), size_t(n) * 4, cudaMemcpyHostToDevice));
    return reinterpret_cast<float4*>(d);
  };
  float4 *dp = up(p), *dm = up(m), *dv = up(v), *dg = up(g);
  const optim::Adam<true> rule{{1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f, 1.02f, 1.1f}};
  auto step = [&] { optim::apply<<<(n4 + 255) / 256, 256>>>(dp, dm, dv, dg, n4, rule); };
  const int warm = 3, iters = 120;
  for (int i = 0; i < warm; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  CK(cudaGetLastError());
  float ms = 0;
  CK(cudaEventElapsedTime(&ms, a, b));
  std::vector<float> got(n);
  CK(cudaMemcpy(got.data(), dp, size_t(n) * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 9973) {
    float pp = p[i], mm = m[i], vv = v[i];
    for (int k = 0; k < warm + iters; ++k) rule(pp, mm, vv, g[i]);
    if (!(std::fabs(got[i] - pp) < 1e-4f)) {
      std::printf("parameter %d: %f, expected %f\n", i, got[i], pp);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
