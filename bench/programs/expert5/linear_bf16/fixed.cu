// SPDX-License-Identifier: Apache-2.0
// Linear layer Y = act(X * W^T + bias) in bf16 with fp32 accumulation (MLP up-projection of a transformer).
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
namespace mlp {

struct Identity { __device__ static float apply(float v) { return v; } };
struct Relu { __device__ static float apply(float v) { return fmaxf(v, 0.0f); } };

__device__ __forceinline__ uint32_t smem_u32(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void cp16(uint32_t dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src));
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n" ::); }
template <int N> __device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;\n" ::"n"(N)); }
__device__ __forceinline__ void ldsm4(uint32_t (&r)[4], uint32_t addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr));
}
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

constexpr int BK = 64;  // one row of a tile is 128 bytes: eight 16-byte chunks

// Byte offset of chunk `chunk` of row `row` inside a tile.
__device__ __forceinline__ uint32_t tile_offset(int row, int chunk) {
  return row * 128 + ((chunk ^ (row & 7)) << 4);
}

template <int ROWS, int THREADS>
__device__ __forceinline__ void load_tile(uint32_t dst, const __nv_bfloat16* src, int ld) {
#pragma unroll
  for (int i = 0; i < ROWS * 8 / THREADS; ++i) {
    const int id = threadIdx.x + i * THREADS;
    const int row = id >> 3, chunk = id & 7;
    cp16(dst + tile_offset(row, chunk), src + (size_t)row * ld + chunk * 8);
  }
}

template <int BM, int BN, int STAGES, class Act, bool HAS_BIAS>
__global__ void __launch_bounds__(128, 2)
linear_kernel(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
              const float* __restrict__ bias, __nv_bfloat16* __restrict__ y, int n, int k) {
  constexpr int THREADS = 128;
  constexpr uint32_t A_BYTES = BM * BK * 2, STAGE_BYTES = (BM + BN) * BK * 2;
  constexpr int WM = BM / 2, WN = BN / 2, MT = WM / 16, NT = WN / 8;
  extern __shared__ __align__(1024) unsigned char smem[];
  const uint32_t base = smem_u32(smem);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int wm = (warp >> 1) * WM, wn = (warp & 1) * WN;

  // Blocks go over the output in bands of eight tile rows.
  constexpr int BAND = 8;
  const int tiles_n = n / BN;
  const int band = blockIdx.x / (BAND * tiles_n), in_band = blockIdx.x % (BAND * tiles_n);
  const int m0 = (band * BAND + in_band % BAND) * BM, n0 = (in_band / BAND) * BN;
  const __nv_bfloat16* xa = x + (size_t)m0 * k;
  const __nv_bfloat16* wb = w + (size_t)n0 * k;

  float acc[MT][NT][4];
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int j = 0; j < NT; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) acc[i][j][q] = 0.0f;

  const int steps = k / BK;
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    load_tile<BM, THREADS>(base + s * STAGE_BYTES, xa + s * BK, k);
    load_tile<BN, THREADS>(base + s * STAGE_BYTES + A_BYTES, wb + s * BK, k);
    cp_commit();
  }
  int read = 0, write = STAGES - 1;
  for (int t = 0; t < steps; ++t) {
    cp_wait<STAGES - 2>();
    __syncthreads();
    const int next = t + STAGES - 1;
    if (next < steps) {
      load_tile<BM, THREADS>(base + write * STAGE_BYTES, xa + next * BK, k);
      load_tile<BN, THREADS>(base + write * STAGE_BYTES + A_BYTES, wb + next * BK, k);
    }
    cp_commit();
    const uint32_t as = base + read * STAGE_BYTES, bs = as + A_BYTES;
#pragma unroll
    for (int kk = 0; kk < BK / 16; ++kk) {
      uint32_t a[MT][4], b[NT / 2][4];
#pragma unroll
      for (int i = 0; i < MT; ++i)
        ldsm4(a[i], as + tile_offset(wm + i * 16 + (lane & 15), kk * 2 + (lane >> 4)));
#pragma unroll
      for (int j = 0; j < NT / 2; ++j)
        ldsm4(b[j], bs + tile_offset(wn + j * 16 + ((lane >> 4) << 3) + (lane & 7), kk * 2 + ((lane >> 3) & 1)));
#pragma unroll
      for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < NT; ++j) mma(acc[i][j], a[i], b[j >> 1][(j & 1) * 2], b[j >> 1][(j & 1) * 2 + 1]);
    }
    read = read + 1 == STAGES ? 0 : read + 1;
    write = write + 1 == STAGES ? 0 : write + 1;
  }

#pragma unroll
  for (int j = 0; j < NT; ++j) {
    const int col = n0 + wn + j * 8 + (lane & 3) * 2;
    float b0 = 0.0f, b1 = 0.0f;
    if constexpr (HAS_BIAS) { b0 = bias[col]; b1 = bias[col + 1]; }
#pragma unroll
    for (int i = 0; i < MT; ++i) {
      const int row = m0 + wm + i * 16 + (lane >> 2);
      *reinterpret_cast<__nv_bfloat162*>(y + (size_t)row * n + col) =
          __floats2bfloat162_rn(Act::apply(acc[i][j][0] + b0), Act::apply(acc[i][j][1] + b1));
      *reinterpret_cast<__nv_bfloat162*>(y + (size_t)(row + 8) * n + col) =
          __floats2bfloat162_rn(Act::apply(acc[i][j][2] + b0), Act::apply(acc[i][j][3] + b1));
    }
  }
}

template <class Act, bool HAS_BIAS>
void linear(const __nv_bfloat16* x, const __nv_bfloat16* w, const float* bias, __nv_bfloat16* y, int m, int n, int k) {
  constexpr int BM = 128, BN = 128, STAGES = 3;
  constexpr int smem = STAGES * (BM + BN) * BK * 2;
  auto kernel = linear_kernel<BM, BN, STAGES, Act, HAS_BIAS>;
  static bool configured = false;
  if (!configured) {
    CUDA_OK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    configured = true;
  }
  kernel<<<(m / BM) * (n / BN), 128, smem>>>(x, w, bias, y, n, k);
}

}  // namespace mlp

int main(int argc, char**) {
  const int M = 4096, N = 4096, K = 4096;
  std::vector<__nv_bfloat16> hx((size_t)M * K), hw((size_t)N * K), hy((size_t)M * N);
  std::vector<float> hb(N);
  uint32_t seed = 17;
  for (auto& v : hx) v = __float2bfloat16(next_unit(seed));
  for (auto& v : hw) v = __float2bfloat16(next_unit(seed) * 0.05f);
  for (auto& v : hb) v = next_unit(seed);
  __nv_bfloat16 *x, *w, *y;
  float* b;
  CUDA_OK(cudaMalloc(&x, hx.size() * 2));
  CUDA_OK(cudaMalloc(&w, hw.size() * 2));
  CUDA_OK(cudaMalloc(&y, hy.size() * 2));
  CUDA_OK(cudaMalloc(&b, N * 4));
  CUDA_OK(cudaMemcpy(x, hx.data(), hx.size() * 2, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(w, hw.data(), hw.size() * 2, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(b, hb.data(), N * 4, cudaMemcpyHostToDevice));
  const bool plain = argc > 1;
  const float us = time_step([&] {
    if (plain) mlp::linear<mlp::Identity, false>(x, w, b, y, M, N, K);
    else mlp::linear<mlp::Relu, true>(x, w, b, y, M, N, K);
  }, 5, 50);
  CUDA_OK(cudaMemcpy(hy.data(), y, hy.size() * 2, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 500; ++i) {
    const int r = next_u32(seed) % M, c = next_u32(seed) % N;
    double s = plain ? 0.0 : hb[c];
    for (int k = 0; k < K; ++k) s += (double)__bfloat162float(hx[(size_t)r * K + k]) * __bfloat162float(hw[(size_t)c * K + k]);
    if (!plain && s < 0) s = 0;
    const double got = __bfloat162float(hy[(size_t)r * N + c]);
    if (!(fabs(got - s) <= 0.02 + 0.01 * fabs(s))) {
      fprintf(stderr, "wrong y[%d][%d]: %f, expected %f\n", r, c, got, s);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}
