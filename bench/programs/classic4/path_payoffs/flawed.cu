// SPDX-License-Identifier: Apache-2.0
// Payoffs of path-dependent options (Asian, lookback, barrier) over a stored set of simulated price paths.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                        \
  do {                                                                                  \
    cudaError_t e_ = (x);                                                               \
    if (e_ != cudaSuccess) {                                                            \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));   \
      std::exit(2);                                                                     \
    }                                                                                   \
  } while (0)

namespace mc {

struct Scenario {
  int paths;
  int dates;
  __host__ __device__ size_t at(int path, int date) const { return size_t(path) * dates + date; }
};

struct AsianCall {
  float strike, invDates;
  struct State { float sum; };
  __host__ __device__ State init() const { return {0.f}; }
  __host__ __device__ void observe(State& s, float x) const { s.sum += x; }
  __host__ __device__ float payoff(const State& s) const { return fmaxf(s.sum * invDates - strike, 0.f); }
};

struct LookbackPut {
  struct State { float high, last; };
  __host__ __device__ State init() const { return {0.f, 0.f}; }
  __host__ __device__ void observe(State& s, float x) const {
    s.high = fmaxf(s.high, x);
    s.last = x;
  }
  __host__ __device__ float payoff(const State& s) const { return s.high - s.last; }
};

struct UpAndOutCall {
  float strike, barrier;
  struct State { float high, last; };
  __host__ __device__ State init() const { return {0.f, 0.f}; }
  __host__ __device__ void observe(State& s, float x) const {
    s.high = fmaxf(s.high, x);
    s.last = x;
  }
  __host__ __device__ float payoff(const State& s) const {
    return s.high < barrier ? fmaxf(s.last - strike, 0.f) : 0.f;
  }
};

__host__ __device__ inline uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

__host__ __device__ inline float move(int path, int date) {
  const uint32_t h = mix(uint32_t(path) * 9781u + mix(uint32_t(date) + 17u));
  const float u = float(h >> 16) + float(h & 0xffff) - 65535.f;
  return 1.f + u * (0.02f / 65536.f);
}

__global__ void simulate(Scenario sc, float spot, float* __restrict__ price) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= sc.paths) return;
  float x = spot;
  for (int t = 0; t < sc.dates; ++t) {
    x *= move(p, t);
    price[sc.at(p, t)] = x;
  }
}

template <class Option, int kUnroll>
__global__ void __launch_bounds__(256)
evaluate(Option option, Scenario sc, const float* __restrict__ price, float discount,
         float* __restrict__ value) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= sc.paths) return;
  auto state = option.init();
  int t = 0;
  for (; t + kUnroll <= sc.dates; t += kUnroll) {
    float x[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) x[u] = price[sc.at(p, t + u)];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) option.observe(state, x[u]);
  }
  for (; t < sc.dates; ++t) option.observe(state, price[sc.at(p, t)]);
  value[p] = discount * option.payoff(state);
}

}  // namespace mc

template <class Option>
static int bench(const char* name, Option option, mc::Scenario sc, const float* price, float spot,
                 float* value, int iters, float* us) {
  const int grid = (sc.paths + 255) / 256;
  auto step = [&] { mc::evaluate<Option, 12><<<grid, 256>>>(option, sc, price, 0.97f, value); };
  for (int i = 0; i < 4; ++i) step();
  cudaEvent_t a, b;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  CHECK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step();
  CHECK(cudaEventRecord(b));
  CHECK(cudaEventSynchronize(b));
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, a, b));
  *us = ms * 1000.f / iters;
  std::vector<float> got(sc.paths);
  CHECK(cudaMemcpy(got.data(), value, sc.paths * 4ull, cudaMemcpyDeviceToHost));
  for (int p = 0; p < sc.paths; p += 1009) {
    auto s = option.init();
    float x = spot;
    for (int t = 0; t < sc.dates; ++t) option.observe(s, x *= mc::move(p, t));
    const float want = 0.97f * option.payoff(s);
    if (std::fabs(got[p] - want) > 0.02f) {
      std::fprintf(stderr, "%s: wrong at path %d: %g, expected %g\n", name, p, got[p], want);
      return 1;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  const mc::Scenario sc{132 * 2048 * 2, 252};
  const float spot = 100.f;
  float *price, *value;
  CHECK(cudaMalloc(&price, size_t(sc.paths) * sc.dates * 4));
  CHECK(cudaMalloc(&value, size_t(sc.paths) * 4));
  mc::simulate<<<(sc.paths + 255) / 256, 256>>>(sc, spot, price);
  CHECK(cudaGetLastError());
  const int which = argc > 1 ? std::atoi(argv[1]) : 0;
  float us = 0;
  int rc = 0;
  if (which == 0)
    rc = bench("asian", mc::AsianCall{100.f, 1.f / sc.dates}, sc, price, spot, value, 200, &us);
  else if (which == 1)
    rc = bench("lookback", mc::LookbackPut{}, sc, price, spot, value, 200, &us);
  else
    rc = bench("barrier", mc::UpAndOutCall{100.f, 1e9f}, sc, price, spot, value, 200, &us);
  if (rc) return rc;
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
