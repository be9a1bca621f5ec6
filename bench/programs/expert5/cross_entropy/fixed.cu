// SPDX-License-Identifier: Apache-2.0
// Cross-entropy loss of language-model logits: one streaming pass for log-sum-exp, one block a token.
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
namespace loss {

template <typename T> struct Unpack;
template <> struct Unpack<__nv_bfloat16> {
  static constexpr int N = 8;
  __device__ static void run(float (&f)[N], const uint4& v) {
    const uint32_t u[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      f[2 * i] = __uint_as_float(u[i] << 16);
      f[2 * i + 1] = __uint_as_float(u[i] & 0xffff0000u);
    }
  }
};
template <> struct Unpack<float> {
  static constexpr int N = 4;
  __device__ static void run(float (&f)[N], const uint4& v) {
    f[0] = __uint_as_float(v.x); f[1] = __uint_as_float(v.y);
    f[2] = __uint_as_float(v.z); f[3] = __uint_as_float(v.w);
  }
};

// Running maximum and sum of exponentials relative to it.
struct RunningLse {
  float top = -1e30f, sum = 0.0f;
  template <int N>
  __device__ __forceinline__ void push(const float (&x)[N]) {
    float t = x[0];
#pragma unroll
    for (int i = 1; i < N; ++i) t = fmaxf(t, x[i]);
    t = fmaxf(top, t);
    sum *= expf(top - t);
#pragma unroll
    for (int i = 0; i < N; ++i) sum += expf(x[i] - t);
    top = t;
  }
  __device__ __forceinline__ void merge(float other_top, float other_sum) {
    const float t = fmaxf(top, other_top);
    sum = sum * expf(top - t) + other_sum * expf(other_top - t);
    top = t;
  }
};

template <typename T, int THREADS, int UNROLL>
__global__ void __launch_bounds__(THREADS)
cross_entropy_kernel(const T* __restrict__ logits, const int* __restrict__ target, float* __restrict__ out, int vocab) {
  constexpr int N = Unpack<T>::N;
  const T* row = logits + (size_t)blockIdx.x * vocab;
  const uint4* vec = reinterpret_cast<const uint4*>(row);
  const int vecs = vocab / N;
  RunningLse lse;
  int i = threadIdx.x;
  for (; i + (UNROLL - 1) * THREADS < vecs; i += UNROLL * THREADS) {
    uint4 v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) v[u] = __ldcs(vec + i + u * THREADS);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      float f[N];
      Unpack<T>::run(f, v[u]);
      lse.push(f);
    }
  }
  for (; i < vecs; i += THREADS) {
    float f[N];
    Unpack<T>::run(f, __ldcs(vec + i));
    lse.push(f);
  }
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
    lse.merge(__shfl_xor_sync(~0u, lse.top, o), __shfl_xor_sync(~0u, lse.sum, o));
  __shared__ float tops[THREADS / 32], sums[THREADS / 32];
  if ((threadIdx.x & 31) == 0) { tops[threadIdx.x >> 5] = lse.top; sums[threadIdx.x >> 5] = lse.sum; }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < THREADS / 32; ++w) lse.merge(tops[w], sums[w]);
    const float picked = static_cast<float>(row[target[blockIdx.x]]);
    out[blockIdx.x] = lse.top + logf(lse.sum) - picked;
  }
}

// Mean of the losses of the batch.
template <int THREADS>
__global__ void mean_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float part[THREADS / 32];
  float s = 0.0f;
  for (int i = threadIdx.x; i < n; i += THREADS) s += in[i];
  for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < THREADS / 32; ++w) s += part[w];
    *out = s / n;
  }
}

template <typename T>
void cross_entropy(const T* logits, const int* target, float* per_token, float* mean, int tokens, int vocab) {
  cross_entropy_kernel<T, 256, 4><<<tokens, 256>>>(logits, target, per_token, vocab);
  mean_kernel<1024><<<1, 1024>>>(per_token, mean, tokens);
}

}  // namespace loss

template <typename T>
static int run(int tokens, int vocab) {
  std::vector<T> hx((size_t)tokens * vocab);
  std::vector<int> ht(tokens);
  uint32_t seed = 41;
  for (auto& v : hx) v = T(next_unit(seed) * 6.0f);
  for (auto& v : ht) v = next_u32(seed) % vocab;
  T* x;
  int* t;
  float *o, *mean;
  CUDA_OK(cudaMalloc(&x, hx.size() * sizeof(T)));
  CUDA_OK(cudaMalloc(&t, tokens * 4));
  CUDA_OK(cudaMalloc(&o, tokens * 4));
  CUDA_OK(cudaMalloc(&mean, 4));
  CUDA_OK(cudaMemcpy(x, hx.data(), hx.size() * sizeof(T), cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(t, ht.data(), tokens * 4, cudaMemcpyHostToDevice));
  const float us = time_step([&] { loss::cross_entropy<T>(x, t, o, mean, tokens, vocab); }, 5, 80);
  std::vector<float> ho(tokens);
  float hm = 0;
  CUDA_OK(cudaMemcpy(ho.data(), o, tokens * 4, cudaMemcpyDeviceToHost));
  CUDA_OK(cudaMemcpy(&hm, mean, 4, cudaMemcpyDeviceToHost));
  double all = 0;
  for (float v : ho) all += v;
  if (!(fabs(all / tokens - hm) <= 1e-3)) {
    fprintf(stderr, "wrong mean: %f, expected %f\n", hm, all / tokens);
    return 1;
  }
  for (int i = 0; i < 200; ++i) {
    const int r = next_u32(seed) % tokens;
    double s = 0;
    for (int c = 0; c < vocab; ++c) s += exp((double)float(hx[(size_t)r * vocab + c]));
    const double want = log(s) - (double)float(hx[(size_t)r * vocab + ht[r]]);
    if (!(fabs(ho[r] - want) <= 1e-3)) {
      fprintf(stderr, "wrong loss[%d]: %f, expected %f\n", r, ho[r], want);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}

int main(int argc, char**) {
  return argc > 1 ? run<float>(4096, 32768) : run<__nv_bfloat16>(6144, 32768);
}
