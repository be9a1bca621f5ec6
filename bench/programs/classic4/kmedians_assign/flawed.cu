// SPDX-License-Identifier: Apache-2.0
// k-medians assignment step: nearest of K centroids (L1 or L-infinity metric) for every embedding vector.
#include <cuda_runtime.h>
#include <cfloat>
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

namespace cluster {

struct Manhattan {
  __host__ __device__ static float step(float acc, float a, float b) { return acc + fabsf(a - b); }
};
struct Chebyshev {
  __host__ __device__ static float step(float acc, float a, float b) { return fmaxf(acc, fabsf(a - b)); }
};

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

template <int D, int QT, int RT>
struct Tiling {
  static constexpr int kQueries = kWarps * QT;   // points of a block
  static constexpr int kRows = 32 * RT;          // centroids of a tile
  static constexpr int kPitch = D;               // floats from one centroid to the next
  static constexpr int kVec = D / 4;
  static constexpr int kSmemFloats = kRows * kPitch + kQueries * D;
};

template <class Metric, int D, int QT, int RT>
__global__ void __launch_bounds__(kThreads)
assign_points(const float* __restrict__ points, const float* __restrict__ centroids, int k,
              int* __restrict__ label, float* __restrict__ dist) {
  using T = Tiling<D, QT, RT>;
  extern __shared__ __align__(16) float smem[];
  float* tile = smem;
  float* query = smem + T::kRows * T::kPitch;

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const size_t first = size_t(blockIdx.x) * T::kQueries;

  const float4* src = reinterpret_cast<const float4*>(points + first * D);
  for (int i = threadIdx.x; i < T::kQueries * T::kVec; i += kThreads)
    reinterpret_cast<float4*>(query)[i] = src[i];

  float best[QT];
  int arg[QT];
#pragma unroll
  for (int q = 0; q < QT; ++q) {
    best[q] = FLT_MAX;
    arg[q] = 0;
  }

  const float* myq = query + warp * QT * D;
  for (int base = 0; base < k; base += T::kRows) {
    __syncthreads();
    const float4* csrc = reinterpret_cast<const float4*>(centroids + size_t(base) * D);
#pragma unroll
    for (int i = threadIdx.x; i < T::kRows * T::kVec; i += kThreads) {
      const int row = i / T::kVec, col = i % T::kVec;
      *reinterpret_cast<float4*>(tile + row * T::kPitch + col * 4) = csrc[i];
    }
    __syncthreads();

    float acc[RT][QT];
#pragma unroll
    for (int r = 0; r < RT; ++r)
#pragma unroll
      for (int q = 0; q < QT; ++q) acc[r][q] = 0.f;

#pragma unroll 2
    for (int v = 0; v < T::kVec; ++v) {
      float4 c[RT];
#pragma unroll
      for (int r = 0; r < RT; ++r)
        c[r] = *reinterpret_cast<const float4*>(tile + (lane + 32 * r) * T::kPitch + v * 4);
#pragma unroll
      for (int q = 0; q < QT; ++q) {
        const float4 x = *reinterpret_cast<const float4*>(myq + q * D + v * 4);
#pragma unroll
        for (int r = 0; r < RT; ++r) {
          acc[r][q] = Metric::step(acc[r][q], x.x, c[r].x);
          acc[r][q] = Metric::step(acc[r][q], x.y, c[r].y);
          acc[r][q] = Metric::step(acc[r][q], x.z, c[r].z);
          acc[r][q] = Metric::step(acc[r][q], x.w, c[r].w);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < RT; ++r)
#pragma unroll
      for (int q = 0; q < QT; ++q)
        if (acc[r][q] < best[q]) {
          best[q] = acc[r][q];
          arg[q] = base + lane + 32 * r;
        }
  }

#pragma unroll
  for (int q = 0; q < QT; ++q) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
      const float b = __shfl_xor_sync(~0u, best[q], o);
      const int a = __shfl_xor_sync(~0u, arg[q], o);
      if (b < best[q] || (b == best[q] && a < arg[q])) {
        best[q] = b;
        arg[q] = a;
      }
    }
    if (lane == 0) {
      label[first + warp * QT + q] = arg[q];
      dist[first + warp * QT + q] = best[q];
    }
  }
}

template <class Metric, int D, int QT, int RT>
void assign(const float* points, int n, const float* centroids, int k, int* label, float* dist,
            cudaStream_t s) {
  using T = Tiling<D, QT, RT>;
  constexpr int bytes = T::kSmemFloats * int(sizeof(float));
  static bool set = false;
  if (!set) {
    CHECK(cudaFuncSetAttribute(assign_points<Metric, D, QT, RT>,
                               cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    set = true;
  }
  assign_points<Metric, D, QT, RT>
      <<<n / T::kQueries, kThreads, bytes, s>>>(points, centroids, k, label, dist);
}

}  // namespace cluster

static uint32_t rng_state = 12345u;
static float uniform() {
  rng_state = rng_state * 1664525u + 1013904223u;
  return float(rng_state >> 8) * (1.f / 16777216.f);
}

int main(int argc, char**) {
  constexpr int D = 64, N = 126720, K = 512, kIters = 100;
  std::vector<float> hp(size_t(N) * D), hc(size_t(K) * D);
  for (auto& v : hp) v = uniform() * 2.f - 1.f;
  for (auto& v : hc) v = uniform() * 2.f - 1.f;
  float *dp, *dc, *dd;
  int* dl;
  CHECK(cudaMalloc(&dp, hp.size() * 4));
  CHECK(cudaMalloc(&dc, hc.size() * 4));
  CHECK(cudaMalloc(&dd, N * 4));
  CHECK(cudaMalloc(&dl, N * 4));
  CHECK(cudaMemcpy(dp, hp.data(), hp.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dc, hc.data(), hc.size() * 4, cudaMemcpyHostToDevice));

  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  const bool chebyshev = argc > 1;
  auto step = [&] {
    if (chebyshev)
      cluster::assign<cluster::Chebyshev, D, 8, 2>(dp, N, dc, K, dl, dd, s);
    else
      cluster::assign<cluster::Manhattan, D, 8, 2>(dp, N, dc, K, dl, dd, s);
  };
  for (int i = 0; i < 5; ++i) step();
  cudaEvent_t a, b;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  CHECK(cudaEventRecord(a, s));
  for (int i = 0; i < kIters; ++i) step();
  CHECK(cudaEventRecord(b, s));
  CHECK(cudaEventSynchronize(b));
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, a, b));

  std::vector<float> gd(N);
  std::vector<int> gl(N);
  CHECK(cudaMemcpy(gd.data(), dd, N * 4, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(gl.data(), dl, N * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < N; i += 997) {
    float best = FLT_MAX, at = FLT_MAX;
    for (int c = 0; c < K; ++c) {
      float acc = 0;
      for (int d = 0; d < D; ++d) {
        const float x = hp[size_t(i) * D + d], y = hc[size_t(c) * D + d];
        acc = chebyshev ? cluster::Chebyshev::step(acc, x, y) : cluster::Manhattan::step(acc, x, y);
      }
      if (acc < best) best = acc;
      if (c == gl[i]) at = acc;
    }
    if (std::fabs(best - gd[i]) > 1e-3f || std::fabs(at - best) > 1e-3f) {
      std::fprintf(stderr, "wrong at point %d: %g, expected %g\n", i, gd[i], best);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);
  return 0;
}
