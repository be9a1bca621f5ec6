// SPDX-License-Identifier: Apache-2.0
// Decode-time projection y = act(W * x): bf16 weights packed in tiles, streamed through a bulk-copy ring.
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
namespace decode {

struct Plain { __device__ static float apply(float v) { return v; } };
struct Silu { __device__ static float apply(float v) { return v / (1.0f + __expf(-v)); } };

__device__ __forceinline__ uint32_t smem_u32(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void bar_init(uint64_t* bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(smem_u32(bar)), "r"(count) : "memory");
}
__device__ __forceinline__ void bar_expect(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(smem_u32(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(uint64_t* bar, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred p;\nWAIT:\n mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @p bra DONE;\n bra WAIT;\nDONE:\n}\n"
      ::"r"(smem_u32(bar)), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_load(void* dst, const void* src, uint32_t bytes, uint64_t* bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n"
               ::"r"(smem_u32(dst)), "l"(src), "r"(bytes), "r"(smem_u32(bar)) : "memory");
}
__device__ __forceinline__ void unpack8(float (&f)[8], const uint4& v) {
  const uint32_t u[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(u[i] << 16);
    f[2 * i + 1] = __uint_as_float(u[i] & 0xffff0000u);
  }
}

template <int ROWS_, int KT_, int STAGES_>
struct Config {
  static constexpr int ROWS = ROWS_, KT = KT_, STAGES = STAGES_;
  static constexpr uint32_t TILE_BYTES = ROWS * KT * 2;
  static constexpr int AHEAD = STAGES - 1;
  static int smem(int k) { return STAGES * TILE_BYTES + k * 2; }
};

// w: tiles of ROWS x KT in row-major order of tiles, each tile contiguous.
template <class Cfg, class Act>
__global__ void __launch_bounds__(128)
packed_gemv(const __nv_bfloat16* __restrict__ w, const __nv_bfloat16* __restrict__ x, float* __restrict__ y, int k) {
  constexpr int RW = Cfg::ROWS / 4;  // rows of a warp
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ __align__(8) uint64_t full[Cfg::STAGES];
  uint4* xs = reinterpret_cast<uint4*>(smem + Cfg::STAGES * Cfg::TILE_BYTES);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int tiles = k / Cfg::KT;
  const unsigned char* src = reinterpret_cast<const unsigned char*>(w) + (size_t)blockIdx.x * tiles * Cfg::TILE_BYTES;

  auto issue = [&](int t) {
    const int s = t % Cfg::STAGES;
    bar_expect(&full[s], Cfg::TILE_BYTES);
    bulk_load(smem + s * Cfg::TILE_BYTES, src + (size_t)t * Cfg::TILE_BYTES, Cfg::TILE_BYTES, &full[s]);
  };

  if (threadIdx.x == 0) {
    for (int s = 0; s < Cfg::STAGES; ++s) bar_init(&full[s], 1);
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    for (int t = 0; t < min(Cfg::AHEAD, tiles); ++t) issue(t);
  }
  for (int i = threadIdx.x; i < k / 8; i += blockDim.x) xs[i] = reinterpret_cast<const uint4*>(x)[i];
  __syncthreads();

  float acc[RW];
#pragma unroll
  for (int r = 0; r < RW; ++r) acc[r] = 0.0f;
  for (int t = 0; t < tiles; ++t) {
    const int s = t % Cfg::STAGES;
    bar_wait(&full[s], (t / Cfg::STAGES) & 1);
    __syncthreads();
    if (threadIdx.x == 0 && t + Cfg::AHEAD < tiles) issue(t + Cfg::AHEAD);
    const uint4* tile = reinterpret_cast<const uint4*>(smem + s * Cfg::TILE_BYTES);
#pragma unroll
    for (int c = 0; c < Cfg::KT / 256; ++c) {
      float xf[8];
      unpack8(xf, xs[t * (Cfg::KT / 8) + c * 32 + lane]);
#pragma unroll
      for (int r = 0; r < RW; ++r) {
        float wf[8];
        unpack8(wf, tile[(warp * RW + r) * (Cfg::KT / 8) + c * 32 + lane]);
#pragma unroll
        for (int i = 0; i < 8; ++i) acc[r] = fmaf(wf[i], xf[i], acc[r]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < RW; ++r) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) acc[r] += __shfl_xor_sync(~0u, acc[r], o);
    if (lane == 0) y[blockIdx.x * Cfg::ROWS + warp * RW + r] = Act::apply(acc[r]);
  }
}

template <class Cfg, class Act>
void project(const __nv_bfloat16* w, const __nv_bfloat16* x, float* y, int n, int k) {
  static bool configured = false;
  if (!configured) {
    CUDA_OK(cudaFuncSetAttribute(packed_gemv<Cfg, Act>, cudaFuncAttributeMaxDynamicSharedMemorySize, Cfg::smem(k)));
    configured = true;
  }
  packed_gemv<Cfg, Act><<<n / Cfg::ROWS, 128, Cfg::smem(k)>>>(w, x, y, k);
}

}  // namespace decode

int main(int argc, char**) {
  using Cfg = decode::Config<8, 256, 12>;
  const int N = 16384, K = 8192;
  std::vector<__nv_bfloat16> hw((size_t)N * K), hx(K);
  uint32_t seed = 29;
  for (auto& v : hw) v = __float2bfloat16(next_unit(seed) * 0.03f);
  for (auto& v : hx) v = __float2bfloat16(next_unit(seed));
  __nv_bfloat16 *w, *x;
  float* y;
  CUDA_OK(cudaMalloc(&w, hw.size() * 2));
  CUDA_OK(cudaMalloc(&x, K * 2));
  CUDA_OK(cudaMalloc(&y, N * 4));
  CUDA_OK(cudaMemcpy(w, hw.data(), hw.size() * 2, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(x, hx.data(), K * 2, cudaMemcpyHostToDevice));
  const bool plain = argc > 1;
  const float us = time_step([&] {
    if (plain) decode::project<Cfg, decode::Plain>(w, x, y, N, K);
    else decode::project<Cfg, decode::Silu>(w, x, y, N, K);
  }, 10, 300);
  std::vector<float> hy(N);
  CUDA_OK(cudaMemcpy(hy.data(), y, N * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 300; ++i) {
    const int r = next_u32(seed) % N;
    const __nv_bfloat16* rows = hw.data() + (size_t)(r / Cfg::ROWS) * Cfg::ROWS * K;
    double s = 0;
    for (int k = 0; k < K; ++k)
      s += (double)__bfloat162float(rows[(size_t)(k / Cfg::KT) * Cfg::ROWS * Cfg::KT + (r % Cfg::ROWS) * Cfg::KT + k % Cfg::KT]) *
           __bfloat162float(hx[k]);
    const double want = plain ? s : s / (1.0 + exp(-s));
    if (!(fabs(hy[r] - want) <= 1e-3 + 1e-3 * fabs(want))) {
      fprintf(stderr, "wrong y[%d]: %f, expected %f\n", r, hy[r], want);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}
