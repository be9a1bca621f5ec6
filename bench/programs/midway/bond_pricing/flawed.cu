// SPDX-License-Identifier: Apache-2.0
// Risk run over a mixed book: half of the positions are options whose implied volatility is
// solved for (Newton on Black-Scholes), half are callable bonds valued on a short-rate path
// (CIR, full truncation Euler). Inputs are structures of arrays per kind.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t err_ = (call);                                                       \
    if (err_ != cudaSuccess) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                        \
                   cudaGetErrorString(err_));                                        \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

template <class F>
static double time_us(F&& launch, int warm = 20, int iters = 50) {
  for (int i = 0; i < warm; ++i) launch();
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) launch();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  float ms = 0.f;
  CK(cudaEventElapsedTime(&ms, a, b));
  CK(cudaEventDestroy(a));
  CK(cudaEventDestroy(b));
  return 1000.0 * ms / iters;
}

__host__ __device__ inline uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

constexpr int kThreads = 256;
constexpr int kNewton = 16;
constexpr int kPathSteps = 40;

struct Job {
  int kind, slot;
};
// A block covers kThreads / 2 positions of each kind.
__device__ __forceinline__ Job job_of_thread() {
  return {static_cast<int>(threadIdx.x & 1), static_cast<int>(threadIdx.x >> 1)};
}

__host__ __device__ inline float norm_cdf(float d) { return 0.5f * erfcf(-0.70710678f * d); }

// Forward price 1, rate 0: value of a call with strike k and expiry t.
__host__ __device__ inline float call_value(float k, float t, float vol, float* vega) {
  const float sd = vol * sqrtf(t);
  const float d1 = -logf(k) / sd + 0.5f * sd;
  *vega = sqrtf(t) * 0.39894228f * expf(-0.5f * d1 * d1);
  return norm_cdf(d1) - k * norm_cdf(d1 - sd);
}
__host__ __device__ inline float implied_vol(float k, float t, float price) {
  float vol = 0.4f;
  for (int i = 0; i < kNewton; ++i) {
    float vega;
    const float v = call_value(k, t, vol, &vega);
    vol -= (v - price) / fmaxf(vega, 1e-3f);
    vol = fminf(fmaxf(vol, 0.02f), 2.0f);
  }
  return vol;
}

__host__ __device__ inline float gaussian(uint32_t s) {
  // Sum of eight bytes, centred and scaled to unit variance.
  uint32_t a = mix32(s), b = mix32(s ^ 0x9e3779b9u), sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += (a & 255u) + (b & 255u);
    a >>= 8;
    b >>= 8;
  }
  return (static_cast<float>(sum) - 1020.0f) * (1.0f / 209.03f);
}
__host__ __device__ inline float bond_value(float r0, float coupon, uint32_t seed) {
  constexpr float dt = 0.25f, root_dt = 0.5f, kappa = 0.3f, mean = 0.04f, sigma = 0.08f;
  float r = r0, discount = 1.0f, value = 0.0f;
  for (int i = 0; i < kPathSteps; ++i) {
    const float rp = fmaxf(r, 0.0f);
    r += kappa * (mean - rp) * dt + sigma * sqrtf(rp) * root_dt * gaussian(seed + i * 7919u);
    discount *= expf(-rp * dt);
    value += coupon * dt * discount;
  }
  return value + discount;
}

struct Book {
  const float* strike;
  const float* expiry;
  const float* quote;
  const float* rate;
  const float* coupon;
  float* vol;
  float* bond;
};

__global__ void __launch_bounds__(kThreads) price_kernel(Book book) {
  const Job job = job_of_thread();
  const int i = blockIdx.x * (kThreads / 2) + job.slot;
  if (job.kind == 0) {
    book.vol[i] = implied_vol(__ldg(book.strike + i), __ldg(book.expiry + i),
                              __ldg(book.quote + i));
  } else {
    book.bond[i] = bond_value(__ldg(book.rate + i), __ldg(book.coupon + i),
                              static_cast<uint32_t>(i) * 2246822519u);
  }
}

int main() {
  const int n = 1 << 20;  // positions of each kind
  std::vector<float> strike(n), expiry(n), quote(n), truth(n), rate(n), coupon(n);
  for (int i = 0; i < n; ++i) {
    const uint32_t a = mix32(i), b = mix32(i + 0x1000000u);
    strike[i] = 0.85f + 0.3f * static_cast<float>(a & 1023) / 1024.0f;
    expiry[i] = 0.5f + static_cast<float>((a >> 10) & 1023) / 512.0f;
    truth[i] = 0.15f + 0.5f * static_cast<float>((a >> 20) & 1023) / 1024.0f;
    float vega;
    quote[i] = call_value(strike[i], expiry[i], truth[i], &vega);
    rate[i] = 0.01f + 0.06f * static_cast<float>(b & 1023) / 1024.0f;
    coupon[i] = 0.02f + 0.05f * static_cast<float>((b >> 10) & 1023) / 1024.0f;
  }
  float* d[7];
  for (float*& p : d) CK(cudaMalloc(&p, n * sizeof(float)));
  const std::vector<float>* inputs[5] = {&strike, &expiry, &quote, &rate, &coupon};
  for (int k = 0; k < 5; ++k)
    CK(cudaMemcpy(d[k], inputs[k]->data(), n * sizeof(float), cudaMemcpyHostToDevice));
  const Book book = {d[0], d[1], d[2], d[3], d[4], d[5], d[6]};
  const double us = time_us([&] { price_kernel<<<2 * n / kThreads, kThreads>>>(book); });

  std::vector<float> vol(n), bond(n);
  CK(cudaMemcpy(vol.data(), d[5], n * sizeof(float), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(bond.data(), d[6], n * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += vol[i] + bond[i];
    if (!(std::fabs(vol[i] - truth[i]) < 2e-3f)) {
      std::fprintf(stderr, "vol %d: got %g want %g\n", i, vol[i], truth[i]);
      return 1;
    }
  }
  for (int i = 0; i < n; i += 37) {
    const float ref = bond_value(rate[i], coupon[i], static_cast<uint32_t>(i) * 2246822519u);
    if (!(std::fabs(bond[i] - ref) < 1e-3f)) {
      std::fprintf(stderr, "bond %d: got %g want %g\n", i, bond[i], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
