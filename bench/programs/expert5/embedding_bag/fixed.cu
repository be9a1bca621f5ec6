// SPDX-License-Identifier: Apache-2.0
// Weighted embedding-bag lookup of a recommendation model: bf16 table, ragged bags, one warp a bag.
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
namespace dlrm {

constexpr int BAG = 32;  // ids of a bag, the unused ones at the end are negative

template <int DIM> struct RowVec;
template <> struct RowVec<128> { using type = uint2; };
template <> struct RowVec<256> { using type = uint4; };

__device__ __forceinline__ void axpy(float* acc, uint32_t word, float w) {
  acc[0] = fmaf(w, __uint_as_float(word << 16), acc[0]);
  acc[1] = fmaf(w, __uint_as_float(word & 0xffff0000u), acc[1]);
}
__device__ __forceinline__ void accumulate(float (&acc)[4], const uint2& v, float w) {
  axpy(acc, v.x, w);
  axpy(acc + 2, v.y, w);
}
__device__ __forceinline__ void accumulate(float (&acc)[8], const uint4& v, float w) {
  axpy(acc, v.x, w);
  axpy(acc + 2, v.y, w);
  axpy(acc + 4, v.z, w);
  axpy(acc + 6, v.w, w);
}

template <int DIM, bool WEIGHTED>
__global__ void __launch_bounds__(256, 4)
embedding_bag(const __nv_bfloat16* __restrict__ table, const int* __restrict__ ids, const float* __restrict__ weights,
              float* __restrict__ out, int bags) {
  using Vec = typename RowVec<DIM>::type;
  constexpr int PER_LANE = DIM / 32;
  const int lane = threadIdx.x & 31;
  const int bag = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  if (bag >= bags) return;
  const int id = ids[bag * BAG + lane];
  const float weight = WEIGHTED ? weights[bag * BAG + lane] : 1.0f;
  const Vec* rows = reinterpret_cast<const Vec*>(table) + lane;

  float acc[PER_LANE];
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) acc[i] = 0.0f;
  const float scale = id >= 0 ? weight : 0.0f;
  const int used = __popc(__ballot_sync(~0u, id >= 0));
  for (int i = 0; i < used; i += 8) {
    Vec v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) v[u] = __ldg(rows + (size_t)max(__shfl_sync(~0u, id, i + u), 0) * 32);
#pragma unroll
    for (int u = 0; u < 8; ++u) accumulate(acc, v[u], __shfl_sync(~0u, scale, i + u));
  }
  float4* dst = reinterpret_cast<float4*>(out + (size_t)bag * DIM + lane * PER_LANE);
#pragma unroll
  for (int i = 0; i < PER_LANE / 4; ++i)
    __stcs(dst + i, make_float4(acc[4 * i], acc[4 * i + 1], acc[4 * i + 2], acc[4 * i + 3]));
}

template <int DIM, bool WEIGHTED>
void lookup(const __nv_bfloat16* table, const int* ids, const float* weights, float* out, int bags) {
  embedding_bag<DIM, WEIGHTED><<<(bags + 7) / 8, 256>>>(table, ids, weights, out, bags);
}

}  // namespace dlrm

template <int DIM>
static int run(int table_rows, int bags) {
  std::vector<__nv_bfloat16> ht((size_t)table_rows * DIM);
  std::vector<int> hi((size_t)bags * dlrm::BAG);
  std::vector<float> hw(hi.size()), ho((size_t)bags * DIM);
  uint32_t seed = 23;
  for (auto& v : ht) v = __float2bfloat16(next_unit(seed));
  for (int b = 0; b < bags; ++b) {
    const int used = 1 + next_u32(seed) / 64 % 32;
    for (int i = 0; i < dlrm::BAG; ++i) {
      hi[b * dlrm::BAG + i] = i < used ? int(next_u32(seed) % (uint32_t)table_rows) : -1;
      hw[b * dlrm::BAG + i] = next_unit(seed);
    }
  }
  __nv_bfloat16* t;
  int* ids;
  float *w, *o;
  CUDA_OK(cudaMalloc(&t, ht.size() * 2));
  CUDA_OK(cudaMalloc(&ids, hi.size() * 4));
  CUDA_OK(cudaMalloc(&w, hw.size() * 4));
  CUDA_OK(cudaMalloc(&o, ho.size() * 4));
  CUDA_OK(cudaMemcpy(t, ht.data(), ht.size() * 2, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(ids, hi.data(), hi.size() * 4, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(w, hw.data(), hw.size() * 4, cudaMemcpyHostToDevice));
  const float us = time_step([&] { dlrm::lookup<DIM, true>(t, ids, w, o, bags); }, 5, 100);
  CUDA_OK(cudaMemcpy(ho.data(), o, ho.size() * 4, cudaMemcpyDeviceToHost));
  for (int k = 0; k < 500; ++k) {
    const int b = next_u32(seed) % (uint32_t)bags;
    for (int c = 0; c < DIM; ++c) {
      double s = 0;
      for (int i = 0; i < dlrm::BAG; ++i) {
        const int r = hi[b * dlrm::BAG + i];
        if (r >= 0) s += (double)hw[b * dlrm::BAG + i] * __bfloat162float(ht[(size_t)r * DIM + c]);
      }
      if (!(fabs(ho[(size_t)b * DIM + c] - s) <= 1e-3)) {
        fprintf(stderr, "wrong bag %d at %d: %f, expected %f\n", b, c, ho[(size_t)b * DIM + c], s);
        return 1;
      }
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}

int main(int argc, char**) { return argc > 1 ? run<256>(1 << 20, 1 << 16) : run<128>(1 << 21, 1 << 17); }
