// SPDX-License-Identifier: Apache-2.0
// Log-likelihoods of speech frames under a Gaussian mixture, and counts of the frames' best components.
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

namespace gmm {

struct DimParam {
  float mean, spread;
};

template <int DIM, int TILE, int THREADS>
__global__ void __launch_bounds__(THREADS)
    score_frames(const float* __restrict__ feat, const DimParam* __restrict__ param, const float* __restrict__ log_const,
                 float* __restrict__ loglik, int* __restrict__ best, int components, int frames) {
  __shared__ __align__(16) DimParam tile[TILE][DIM];
  __shared__ float tile_const[TILE];
  const int frame = blockIdx.x * THREADS + threadIdx.x;
  float x[DIM];
#pragma unroll
  for (int d = 0; d < DIM; ++d) x[d] = frame < frames ? feat[size_t(d) * frames + frame] : 0.0f;

  float top = -INFINITY, sum = 0.0f;
  int arg = 0;
  for (int k0 = 0; k0 < components; k0 += TILE) {
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * DIM / 2; i += THREADS)
      reinterpret_cast<float4*>(tile)[i] = reinterpret_cast<const float4*>(param + size_t(k0) * DIM)[i];
    if (threadIdx.x < TILE) tile_const[threadIdx.x] = log_const[k0 + threadIdx.x];
    __syncthreads();

#pragma unroll 1
    for (int k = 0; k < TILE; ++k) {
      float dist[2] = {0.0f, 0.0f};
#pragma unroll
      for (int d = 0; d < DIM; ++d) {
        const DimParam p = tile[k][d];
        const float z = (x[d] - p.mean) / p.spread;
        dist[d & 1] = fmaf(z, z, dist[d & 1]);
      }
      const float ll = fmaf(-0.5f, dist[0] + dist[1], tile_const[k]);
      if (ll > top) {
        sum = fmaf(sum, __expf(top - ll), 1.0f);
        top = ll;
        arg = k0 + k;
      } else {
        sum += __expf(ll - top);
      }
    }
  }
  if (frame < frames) {
    loglik[frame] = top + __logf(sum);
    best[frame] = arg;
  }
}

__global__ void count_best(const int4* __restrict__ best, int* __restrict__ counts, int components, int n4) {
  extern __shared__ int local[];
  for (int i = threadIdx.x; i < components; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
    const int4 b = best[i];
    atomicAdd(&local[b.x], 1);
    atomicAdd(&local[b.y], 1);
    atomicAdd(&local[b.z], 1);
    atomicAdd(&local[b.w], 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < components; i += blockDim.x)
    if (local[i]) atomicAdd(&counts[i], local[i]);
}

}  // namespace gmm

static uint32_t rng_state = 4711u;
static float uniform() {
  rng_state = rng_state * 1664525u + 1013904223u;
  return (rng_state >> 8) * (1.0f / 16777216.0f);
}

int main() {
  constexpr int kDim = 40, kTile = 32, kThreads = 128;
  const int components = 128, frames = 132 * 2304;
  std::vector<float> mean(components * kDim), sigma(components * kDim), log_const(components);
  std::vector<gmm::DimParam> param(components * kDim);
  for (int k = 0; k < components; ++k) {
    double c = std::log(1.0 / components) - 0.5 * kDim * std::log(6.283185307179586);
    for (int d = 0; d < kDim; ++d) {
      const int i = k * kDim + d;
      mean[i] = 4.0f * uniform() - 2.0f;
      sigma[i] = 0.6f + uniform();
      c -= std::log(double(sigma[i]));
      param[i] = gmm::DimParam{mean[i], sigma[i]};
    }
    log_const[k] = float(c);
  }
  std::vector<float> feat(size_t(kDim) * frames), loglik(frames);
  for (auto& v : feat) v = 5.0f * uniform() - 2.5f;
  std::vector<int> best(frames), counts(components);

  float *d_feat, *d_const, *d_loglik;
  gmm::DimParam* d_param;
  int *d_best, *d_counts;
  CK(cudaMalloc(&d_feat, feat.size() * sizeof(float)));
  CK(cudaMalloc(&d_const, components * sizeof(float)));
  CK(cudaMalloc(&d_loglik, frames * sizeof(float)));
  CK(cudaMalloc(&d_param, param.size() * sizeof(gmm::DimParam)));
  CK(cudaMalloc(&d_best, frames * sizeof(int)));
  CK(cudaMalloc(&d_counts, components * sizeof(int)));
  CK(cudaMemcpy(d_feat, feat.data(), feat.size() * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_const, log_const.data(), components * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_param, param.data(), param.size() * sizeof(gmm::DimParam), cudaMemcpyHostToDevice));
  CK(cudaMemset(d_counts, 0, components * sizeof(int)));

  int steps = 0;
  auto step = [&] {
    gmm::score_frames<kDim, kTile, kThreads><<<(frames + kThreads - 1) / kThreads, kThreads>>>(
        d_feat, d_param, d_const, d_loglik, d_best, components, frames);
    gmm::count_best<<<132, 256, components * sizeof(int)>>>(reinterpret_cast<int4*>(d_best), d_counts, components, frames / 4);
    ++steps;
  };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 60;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(loglik.data(), d_loglik, frames * sizeof(float), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(best.data(), d_best, frames * sizeof(int), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(counts.data(), d_counts, components * sizeof(int), cudaMemcpyDeviceToHost));

  for (int f = 0; f < frames; f += 499) {
    std::vector<double> ll(components);
    double top = -1e300, sum = 0.0;
    for (int k = 0; k < components; ++k) {
      double dist = 0.0;
      for (int d = 0; d < kDim; ++d) {
        const double z = (double(feat[size_t(d) * frames + f]) - mean[k * kDim + d]) / sigma[k * kDim + d];
        dist += z * z;
      }
      ll[k] = log_const[k] - 0.5 * dist;
      top = std::fmax(top, ll[k]);
    }
    for (double v : ll) sum += std::exp(v - top);
    const double want = top + std::log(sum);
    if (!(std::fabs(loglik[f] - want) <= 1e-4 * std::fabs(want)) || ll[best[f]] < top - 1e-2) {
      std::fprintf(stderr, "wrong likelihood of frame %d: %g, not %g\n", f, loglik[f], want);
      return 1;
    }
  }
  std::vector<int> want_counts(components);
  for (int b : best) ++want_counts[b];
  for (int k = 0; k < components; ++k)
    if (counts[k] != want_counts[k] * steps) {
      std::fprintf(stderr, "wrong count of component %d\n", k);
      return 1;
    }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
