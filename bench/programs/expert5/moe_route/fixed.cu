// SPDX-License-Identifier: Apache-2.0
// Mixture-of-experts routing: top-2 experts of every token, gate weights and per-expert token lists.
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
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
namespace moe {

constexpr int THREADS = 256;

// Sortable key: order-preserving bits of the bf16 logit above, the complement of the expert below.
__device__ __host__ inline uint32_t make_key(uint32_t bits16, int expert) {
  const uint32_t ordered = (bits16 & 0x8000u) ? (~bits16 & 0xffffu) : (bits16 | 0x8000u);
  return ordered << 16 | (0xffffu - (uint32_t)expert);
}
__device__ __host__ inline int key_expert(uint32_t key) { return int(0xffffu - (key & 0xffffu)); }
__device__ inline float key_logit(uint32_t key) {
  const uint32_t o = key >> 16;
  const uint32_t bits = (o & 0x8000u) ? (o & 0x7fffu) : (~o & 0xffffu);
  return __uint_as_float(bits << 16);
}

// Eight logits a lane, EXPERTS / 8 lanes a token, PASSES tokens a group of lanes.
template <int EXPERTS, int PASSES>
__global__ void __launch_bounds__(THREADS)
route_kernel(const uint4* __restrict__ logits, float2* __restrict__ gates, int* __restrict__ cursor,
             int* __restrict__ lists, int tokens, int capacity) {
  constexpr int LANES = EXPERTS / 8, GROUPS = THREADS / LANES;
  __shared__ int count[EXPERTS], start[EXPERTS];
  const int sub = threadIdx.x % LANES, group = threadIdx.x / LANES;
  const int first = blockIdx.x * GROUPS * PASSES + group;
  for (int e = threadIdx.x; e < EXPERTS; e += THREADS) { count[e] = 0; start[e] = 0; }
  __syncthreads();

  uint4 raw[PASSES];
#pragma unroll
  for (int p = 0; p < PASSES; ++p) raw[p] = __ldcs(logits + (size_t)(first + p * GROUPS) * LANES + sub);

  int expert[PASSES][2], slot[PASSES][2];
#pragma unroll
  for (int p = 0; p < PASSES; ++p) {
    const uint32_t words[4] = {raw[p].x, raw[p].y, raw[p].z, raw[p].w};
    uint32_t best = 0, second = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t key = make_key((words[i >> 1] >> ((i & 1) * 16)) & 0xffffu, sub * 8 + i);
      second = max(second, min(best, key));
      best = max(best, key);
    }
#pragma unroll
    for (int o = 1; o < LANES; o <<= 1) {
      const uint32_t b = __shfl_xor_sync(~0u, best, o), s = __shfl_xor_sync(~0u, second, o);
      second = max(max(second, s), min(best, b));
      best = max(best, b);
    }
    expert[p][0] = key_expert(best);
    expert[p][1] = key_expert(second);
    slot[p][0] = slot[p][1] = 0;
    if (sub == 0) {
      const float g = __fdividef(1.0f, 1.0f + __expf(key_logit(second) - key_logit(best)));
      gates[first + p * GROUPS] = make_float2(g, 1.0f - g);
#pragma unroll
      for (int c = 0; c < 2; ++c) slot[p][c] = atomicAdd(&count[expert[p][c]], 1);
    }
  }
  __syncthreads();
  if (threadIdx.x < EXPERTS) start[threadIdx.x] = atomicAdd(&cursor[threadIdx.x], count[threadIdx.x]);
  __syncthreads();
  if (sub == 0) {
#pragma unroll
    for (int p = 0; p < PASSES; ++p)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int e = expert[p][c], s = start[e] + slot[p][c];
        if (s < capacity) lists[(size_t)e * capacity + s] = first + p * GROUPS;
      }
  }
}

// Publishes the list lengths and clears the cursors for the next step.
__global__ void publish_lengths(int* __restrict__ cursor, int* __restrict__ lengths, int experts) {
  if (threadIdx.x < experts) {
    lengths[threadIdx.x] = cursor[threadIdx.x];
    cursor[threadIdx.x] = 0;
  }
}

template <int EXPERTS>
void route(const uint4* logits, float2* gates, int* cursor, int* lengths, int* lists, int tokens, int capacity) {
  constexpr int PASSES = 8, PER_BLOCK = THREADS / (EXPERTS / 8) * PASSES;
  route_kernel<EXPERTS, PASSES><<<tokens / PER_BLOCK, THREADS>>>(logits, gates, cursor, lists, tokens, capacity);
  publish_lengths<<<1, 256>>>(cursor, lengths, EXPERTS);
}

}  // namespace moe

template <int EXPERTS>
static int run(int tokens) {
  const int capacity = tokens;
  std::vector<uint16_t> hx((size_t)tokens * EXPERTS);
  uint32_t seed = 11;
  for (int t = 0; t < tokens; ++t)
    for (int e = 0; e < EXPERTS; ++e) {
      const float v = next_unit(seed) * 4.0f + (e % 16 == 5 ? 0.8f : 0.0f);
      const __nv_bfloat16 b = __float2bfloat16(v);
      hx[(size_t)t * EXPERTS + e] = *reinterpret_cast<const uint16_t*>(&b);
    }
  uint4* x;
  float2* gates;
  int *cursor, *lengths, *lists;
  CUDA_OK(cudaMalloc(&x, hx.size() * 2));
  CUDA_OK(cudaMalloc(&gates, (size_t)tokens * 8));
  CUDA_OK(cudaMalloc(&cursor, EXPERTS * 4));
  CUDA_OK(cudaMalloc(&lengths, EXPERTS * 4));
  CUDA_OK(cudaMalloc(&lists, (size_t)EXPERTS * capacity * 4));
  CUDA_OK(cudaMemcpy(x, hx.data(), hx.size() * 2, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemset(cursor, 0, EXPERTS * 4));
  const float us = time_step([&] { moe::route<EXPERTS>(x, gates, cursor, lengths, lists, tokens, capacity); }, 5, 60);
  std::vector<int> hn(EXPERTS), want(EXPERTS, 0), top(tokens * 2);
  std::vector<float2> hg(tokens);
  CUDA_OK(cudaMemcpy(hn.data(), lengths, EXPERTS * 4, cudaMemcpyDeviceToHost));
  CUDA_OK(cudaMemcpy(hg.data(), gates, (size_t)tokens * 8, cudaMemcpyDeviceToHost));
  for (int t = 0; t < tokens; ++t) {
    uint32_t best = 0, second = 0;
    for (int e = 0; e < EXPERTS; ++e) {
      const uint32_t key = moe::make_key(hx[(size_t)t * EXPERTS + e], e);
      if (key > best) { second = best; best = key; }
      else if (key > second) second = key;
    }
    top[2 * t] = moe::key_expert(best);
    top[2 * t + 1] = moe::key_expert(second);
    ++want[top[2 * t]];
    ++want[top[2 * t + 1]];
    if (t % 1009 == 0) {
      auto value = [&](int e) {
        uint32_t u = (uint32_t)hx[(size_t)t * EXPERTS + e] << 16;
        float f;
        memcpy(&f, &u, 4);
        return (double)f;
      };
      const double g = 1.0 / (1.0 + exp(value(top[2 * t + 1]) - value(top[2 * t])));
      if (!(fabs(hg[t].x - g) <= 1e-4)) {
        fprintf(stderr, "wrong gate of token %d: %f, expected %f\n", t, hg[t].x, g);
        return 1;
      }
    }
  }
  std::vector<int> list(capacity);
  for (int e = 0; e < EXPERTS; ++e) {
    if (hn[e] != want[e]) {
      fprintf(stderr, "wrong length of list %d: %d, expected %d\n", e, hn[e], want[e]);
      return 1;
    }
    CUDA_OK(cudaMemcpy(list.data(), lists + (size_t)e * capacity, (size_t)hn[e] * 4, cudaMemcpyDeviceToHost));
    std::vector<char> seen(tokens, 0);
    for (int i = 0; i < hn[e]; ++i) {
      const int t = list[i];
      if (t < 0 || t >= tokens || seen[t] || (top[2 * t] != e && top[2 * t + 1] != e)) {
        fprintf(stderr, "wrong entry %d of list %d: %d\n", i, e, t);
        return 1;
      }
      seen[t] = 1;
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}

int main(int argc, char**) { return argc > 1 ? run<128>(1 << 19) : run<64>(1 << 20); }
