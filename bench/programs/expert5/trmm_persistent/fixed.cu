// SPDX-License-Identifier: Apache-2.0
// Triangular matrix product C = L * B with L lower triangular, fp16 operands and fp32 accumulation.
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
namespace dla {

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
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

constexpr int BM = 128, BN = 128, BK = 32, STAGES = 4, THREADS = 256;
constexpr uint32_t A_BYTES = BM * BK * 2, STAGE_BYTES = (BM + BN) * BK * 2;

__device__ __forceinline__ uint32_t swizzled(int row, int chunk) {
  return row * 64 + ((chunk ^ ((row >> 1) & 3)) << 4);
}

__device__ __forceinline__ void stage_tiles(uint32_t dst, const __half* a, const __half* b, int ld) {
#pragma unroll
  for (int i = 0; i < BM * 4 / THREADS; ++i) {
    const int id = threadIdx.x + i * THREADS, row = id >> 2, chunk = id & 3;
    cp16(dst + swizzled(row, chunk), a + (size_t)row * ld + chunk * 8);
    cp16(dst + A_BYTES + swizzled(row, chunk), b + (size_t)row * ld + chunk * 8);
  }
}

// l: n x n, row major, zeros above the diagonal; bt: m x n, the columns of B one after the other; c: n x m.
template <typename Out>
__global__ void __launch_bounds__(THREADS, 2)
trmm_lower(const __half* __restrict__ l, const __half* __restrict__ bt, Out* __restrict__ c, int n, int m) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const uint32_t base = (uint32_t)__cvta_generic_to_shared(smem);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int wm = (warp >> 2) * 64, wn = (warp & 3) * 32;
  const int tiles_m = m / BN, tiles = (n / BM) * tiles_m;

  for (int t = tiles - 1 - (int)blockIdx.x; t >= 0; t -= gridDim.x) {
    const int ti = t / tiles_m, tj = t % tiles_m;
    const __half* a = l + (size_t)ti * BM * n;
    const __half* b = bt + (size_t)tj * BN * n;
    const int steps = (ti + 1) * (BM / BK);

    float acc[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int q = 0; q < 4; ++q) acc[i][j][q] = 0.0f;

#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
      stage_tiles(base + s * STAGE_BYTES, a + s * BK, b + s * BK, n);
      cp_commit();
    }
    for (int k = 0; k < steps; ++k) {
      cp_wait<STAGES - 2>();
      __syncthreads();
      const int next = k + STAGES - 1;
      if (next < steps) stage_tiles(base + (next % STAGES) * STAGE_BYTES, a + next * BK, b + next * BK, n);
      cp_commit();
      const uint32_t as = base + (k % STAGES) * STAGE_BYTES, bs = as + A_BYTES;
#pragma unroll
      for (int kk = 0; kk < BK / 16; ++kk) {
        uint32_t fa[4][4], fb[2][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) ldsm4(fa[i], as + swizzled(wm + i * 16 + (lane & 15), kk * 2 + (lane >> 4)));
#pragma unroll
        for (int j = 0; j < 2; ++j)
          ldsm4(fb[j], bs + swizzled(wn + j * 16 + ((lane >> 4) << 3) + (lane & 7), kk * 2 + ((lane >> 3) & 1)));
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) mma(acc[i][j], fa[i], fb[j >> 1][(j & 1) * 2], fb[j >> 1][(j & 1) * 2 + 1]);
      }
    }
    cp_wait<0>();
    __syncthreads();

#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int row = ti * BM + wm + i * 16 + (lane >> 2), col = tj * BN + wn + j * 8 + (lane & 3) * 2;
        if constexpr (sizeof(Out) == 4) {
          *reinterpret_cast<float2*>(c + (size_t)row * m + col) = make_float2(acc[i][j][0], acc[i][j][1]);
          *reinterpret_cast<float2*>(c + (size_t)(row + 8) * m + col) = make_float2(acc[i][j][2], acc[i][j][3]);
        } else {
          *reinterpret_cast<__half2*>(c + (size_t)row * m + col) = __floats2half2_rn(acc[i][j][0], acc[i][j][1]);
          *reinterpret_cast<__half2*>(c + (size_t)(row + 8) * m + col) = __floats2half2_rn(acc[i][j][2], acc[i][j][3]);
        }
      }
  }
}

template <typename Out>
void trmm(const __half* l, const __half* bt, Out* c, int n, int m) {
  constexpr int smem = STAGES * STAGE_BYTES;
  static int blocks = 0;
  if (blocks == 0) {
    int sms = 0, per_sm = 0;
    CUDA_OK(cudaFuncSetAttribute(trmm_lower<Out>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, trmm_lower<Out>, THREADS, smem));
    blocks = sms * per_sm;
  }
  trmm_lower<Out><<<blocks, THREADS, smem>>>(l, bt, c, n, m);
}

}  // namespace dla

int main(int argc, char**) {
  const int n = 8192, m = 4096;
  std::vector<__half> hl((size_t)n * n, __float2half(0.0f)), hb((size_t)m * n);
  uint32_t seed = 5;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j) hl[(size_t)i * n + j] = __float2half(next_unit(seed) * 0.1f);
  for (auto& v : hb) v = __float2half(next_unit(seed));
  __half *l, *b, *ch = nullptr;
  float* c;
  CUDA_OK(cudaMalloc(&l, hl.size() * 2));
  CUDA_OK(cudaMalloc(&b, hb.size() * 2));
  CUDA_OK(cudaMalloc(&c, (size_t)n * m * 4));
  CUDA_OK(cudaMemcpy(l, hl.data(), hl.size() * 2, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(b, hb.data(), hb.size() * 2, cudaMemcpyHostToDevice));
  if (argc > 1) {
    CUDA_OK(cudaMalloc(&ch, (size_t)n * m * 2));
    dla::trmm<__half>(l, b, ch, n, m);
  }
  const float us = time_step([&] { dla::trmm<float>(l, b, c, n, m); }, 5, 40);
  std::vector<float> hc((size_t)n * m);
  CUDA_OK(cudaMemcpy(hc.data(), c, hc.size() * 4, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 400; ++t) {
    const int i = next_u32(seed) % n, j = next_u32(seed) % m;
    double s = 0;
    for (int k = 0; k <= i; ++k) s += (double)__half2float(hl[(size_t)i * n + k]) * __half2float(hb[(size_t)j * n + k]);
    const double got = hc[(size_t)i * m + j];
    if (!(fabs(got - s) <= 2e-3 + 1e-3 * fabs(s))) {
      fprintf(stderr, "wrong c[%d][%d]: %f, expected %f\n", i, j, got, s);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", us);
  return 0;
}
