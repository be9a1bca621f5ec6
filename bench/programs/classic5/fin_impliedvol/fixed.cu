// SPDX-License-Identifier: Apache-2.0
// Implied volatilities of a book of European calls and puts by Newton iterations on the Black-Scholes price.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>
#include <cuda_runtime.h>

static void check(cudaError_t e, const char* what) {
  if (e != cudaSuccess) {
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    std::exit(2);
  }
}

namespace pricing {

struct Book {
  const float* spot;
  const float* strike;
  const float* tenor;
  const float* quote;
  int count;
};

// Abramowitz & Stegun 26.2.17
struct NormalCdf {
  __device__ __forceinline__ float operator()(float x) const {
    const auto k = 1.0f / (1.0f + 0.2316419f * fabsf(x));
    const auto poly = k * (0.319381530f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const auto tail = 0.3989422804f * __expf(-0.5f * x * x) * poly;
    return x > 0.0f ? 1.0f - tail : tail;
  }
};

__device__ __forceinline__ float normal_pdf(float x) {
  return 0.3989422804f * __expf(-0.5f * x * x);
}

template <int kSteps, bool kCall, typename Cdf>
__global__ void __launch_bounds__(256) implied_vol(Book book, float rate, float* __restrict__ vol) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= book.count) return;
  const Cdf cdf{};
  const float s = book.spot[i];
  const float k = book.strike[i];
  const float t = book.tenor[i];
  const float target = book.quote[i];
  const float root_t = sqrtf(t);
  const float inv_root_t = __fdividef(1.0f, root_t);
  const float disc = k * __expf(-rate * t);
  const float log_m = __logf(s / k);
  float sigma = 0.35f;
#pragma unroll 1
  for (int it = 0; it < kSteps; ++it) {
    const float d1 = __fdividef(log_m + (rate + 0.5f * sigma * sigma) * t, sigma) * inv_root_t;
    const float d2 = d1 - sigma * root_t;
    const float n1 = cdf(d1), n2 = cdf(d2);
    float price = s * n1 - disc * n2;
    if (!kCall) price += disc - s;
    const float vega = fmaxf(s * normal_pdf(d1) * root_t, 1e-3f);
    sigma = fminf(fmaxf(sigma - __fdividef(price - target, vega), 0.02f), 2.5f);
  }
  vol[i] = sigma;
}

}  // namespace pricing

static double bs(double s, double k, double t, double r, double v, bool call) {
  const double d1 = (std::log(s / k) + (r + 0.5 * v * v) * t) / (v * std::sqrt(t));
  const double d2 = d1 - v * std::sqrt(t);
  auto cdf = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  const double c = s * cdf(d1) - k * std::exp(-r * t) * cdf(d2);
  return call ? c : c + k * std::exp(-r * t) - s;
}

int main() {
  const int n = 2 << 20;
  const float rate = 0.03f;
  std::mt19937 gen(20240611);
  std::uniform_real_distribution<float> us(80, 120), uk(0.85f, 1.15f), ut(0.25f, 2.0f), uv(0.15f, 0.6f);
  std::vector<float> spot(n), strike(n), tenor(n), truth(n), call(n), put(n);
  for (int i = 0; i < n; ++i) {
    spot[i] = us(gen);
    strike[i] = spot[i] * uk(gen);
    tenor[i] = ut(gen);
    truth[i] = uv(gen);
    call[i] = float(bs(spot[i], strike[i], tenor[i], rate, truth[i], true));
    put[i] = float(bs(spot[i], strike[i], tenor[i], rate, truth[i], false));
  }
  auto upload = [n](const std::vector<float>& h) {
    float* d = nullptr;
    check(cudaMalloc(&d, n * sizeof(float)), "malloc");
    check(cudaMemcpy(d, h.data(), n * sizeof(float), cudaMemcpyHostToDevice), "upload");
    return d;
  };
  float *ds = upload(spot), *dk = upload(strike), *dt = upload(tenor), *dc = upload(call), *dp = upload(put);
  float *vc = upload(call), *vp = upload(put);
  const pricing::Book calls{ds, dk, dt, dc, n}, puts{ds, dk, dt, dp, n};
  const int threads = 256, blocks = (n + threads - 1) / threads;
  auto step = [&] {
    pricing::implied_vol<8, true, pricing::NormalCdf><<<blocks, threads>>>(calls, rate, vc);
    pricing::implied_vol<8, false, pricing::NormalCdf><<<blocks, threads>>>(puts, rate, vp);
  };
  for (int i = 0; i < 5; ++i) step();
  check(cudaDeviceSynchronize(), "warm-up");
  cudaEvent_t e0, e1;
  cudaEventCreate(&e0);
  cudaEventCreate(&e1);
  const int iters = 100;
  cudaEventRecord(e0);
  for (int i = 0; i < iters; ++i) step();
  cudaEventRecord(e1);
  check(cudaEventSynchronize(e1), "run");
  check(cudaGetLastError(), "launch");
  float ms = 0;
  cudaEventElapsedTime(&ms, e0, e1);
  std::vector<float> hc(n), hp(n);
  check(cudaMemcpy(hc.data(), vc, n * sizeof(float), cudaMemcpyDeviceToHost), "download");
  check(cudaMemcpy(hp.data(), vp, n * sizeof(float), cudaMemcpyDeviceToHost), "download");
  for (int i = 0; i < n; i += 977) {
    const double pc = bs(spot[i], strike[i], tenor[i], rate, hc[i], true);
    const double pp = bs(spot[i], strike[i], tenor[i], rate, hp[i], false);
    if (!(std::fabs(pc - call[i]) < 5e-3) || !(std::fabs(pp - put[i]) < 5e-3)) {
      std::printf("option %d: call %f vs %f, put %f vs %f\n", i, pc, call[i], pp, put[i]);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
