// SPDX-License-Identifier: Apache-2.0
// Tensor-core GEMM: 128x128x32 tiles, a four-stage cp.async ring, XOR-swizzled shared memory,
// ldmatrix and mma.sync with 64x32 warp tiles.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t err_ = (call);                                                       \
    if (err_ != cudaSuccess) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                        \
                   cudaGetErrorString(err_));                                        \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

template <class F>
static double time_us(F&& launch, int warm = 10, int iters = 50) {
  for (int i = 0; i < warm; ++i) launch();
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) launch();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  float ms = 0.f;
  CK(cudaEventElapsedTime(&ms, a, b));
  CK(cudaEventDestroy(a));
  CK(cudaEventDestroy(b));
  return 1000.0 * ms / iters;
}

__host__ __device__ inline uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

__device__ __forceinline__ uint32_t smem_addr(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void cp16(void* dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem_addr(dst)), "l"(src)
               : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void ldsm4(uint32_t (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem_addr(p))
               : "memory");
}
__device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

constexpr int BM = 128, BN = 128, BK = 32, kStages = 4;
constexpr int kThreads = 256;
constexpr int WM = 64, WN = 32;
constexpr int kWarpsN = BN / WN;
constexpr int kStageElems = (BM + BN) * BK;

// Position of 16-byte chunk c of tile row r, in chunks.
__device__ __forceinline__ int chunk_at(int r, int c) {
  return r * (BK / 8) + (c ^ ((r >> 1) & 3));
}

__device__ __forceinline__ void load_tile(uint16_t* dst, const uint16_t* src, int ld) {
#pragma unroll
  for (int i = 0; i < BM * (BK / 8) / kThreads; ++i) {
    const int id = threadIdx.x + i * kThreads;
    const int r = id >> 2, c = id & 3;
    cp16(dst + chunk_at(r, c) * 8, src + static_cast<size_t>(r) * ld + c * 8);
  }
}

__device__ __forceinline__ uint32_t pack_bf16(float lo, float hi) {
  uint32_t a = __float_as_uint(lo), b = __float_as_uint(hi);
  a += 0x7fff + ((a >> 16) & 1);
  b += 0x7fff + ((b >> 16) & 1);
  return (a >> 16) | (b & 0xffff0000u);
}

// C[m][n] = sum over k of A[m][k] * B[n][k], bf16 in and out, fp32 accumulation.
__global__ void __launch_bounds__(kThreads, 2)
    gemm_kernel(const uint16_t* __restrict__ A, const uint16_t* __restrict__ B,
                uint16_t* __restrict__ C, int N, int K) {
  extern __shared__ __align__(128) unsigned char raw[];
  uint16_t* ring = reinterpret_cast<uint16_t*>(raw);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int wm = warp / kWarpsN * WM, wn = warp % kWarpsN * WN;
  const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  const uint16_t* a_src = A + static_cast<size_t>(m0) * K;
  const uint16_t* b_src = B + static_cast<size_t>(n0) * K;
  const int steps = K / BK;

  float acc[WM / 16][WN / 8][4];
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;

#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    load_tile(ring + s * kStageElems, a_src + s * BK, K);
    load_tile(ring + s * kStageElems + BM * BK, b_src + s * BK, K);
    cp_commit();
  }
  for (int t = 0; t < steps; ++t) {
    cp_wait<kStages - 2>();
    __syncthreads();
    const int ahead = t + kStages - 1;
    if (ahead < steps) {
      uint16_t* slot = ring + ahead % kStages * kStageElems;
      load_tile(slot, a_src + ahead * BK, K);
      load_tile(slot + BM * BK, b_src + ahead * BK, K);
    }
    cp_commit();

    const uint16_t* as = ring + t % kStages * kStageElems;
    const uint16_t* bs = as + BM * BK;
#pragma unroll
    for (int kk = 0; kk < BK / 16; ++kk) {
      uint32_t a[WM / 16][4], b[WN / 16][4];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
        ldsm4(a[i], as + chunk_at(wm + i * 16 + (lane & 15), kk * 2 + (lane >> 4)) * 8);
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)
        ldsm4(b[j], bs + chunk_at(wn + j * 16 + (lane & 7) + ((lane >> 4) << 3),
                                  kk * 2 + ((lane >> 3) & 1)) * 8);
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
          mma_bf16(acc[i][j], a[i], b[j >> 1][(j & 1) * 2], b[j >> 1][(j & 1) * 2 + 1]);
    }
  }

#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      uint16_t* row = C + static_cast<size_t>(m0 + wm + i * 16 + (lane >> 2) + h * 8) * N + n0 + wn;
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
        *reinterpret_cast<uint32_t*>(row + j * 8 + (lane & 3) * 2) =
            pack_bf16(acc[i][j][h * 2], acc[i][j][h * 2 + 1]);
    }
}

__host__ __device__ inline float element(uint32_t i) {
  return static_cast<float>(static_cast<int>(mix32(i) & 15) - 7) * 0.125f;
}
__global__ void fill_kernel(uint16_t* p, uint32_t n, uint32_t salt) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = static_cast<uint16_t>(__float_as_uint(element(i + salt)) >> 16);
}

int main() {
  const int M = 4096, N = 4096, K = 4096;
  const uint32_t salt = 0x40000000u;
  uint16_t *A, *B, *C;
  CK(cudaMalloc(&A, static_cast<size_t>(M) * K * 2));
  CK(cudaMalloc(&B, static_cast<size_t>(N) * K * 2));
  CK(cudaMalloc(&C, static_cast<size_t>(M) * N * 2));
  fill_kernel<<<1024, 256>>>(A, static_cast<uint32_t>(M) * K, 0);
  fill_kernel<<<1024, 256>>>(B, static_cast<uint32_t>(N) * K, salt);
  const int bytes = kStages * kStageElems * 2;
  CK(cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const dim3 grid(N / BN, M / BM);
  const double us = time_us([&] { gemm_kernel<<<grid, kThreads, bytes>>>(A, B, C, N, K); });

  std::vector<uint16_t> got(static_cast<size_t>(M) * N);
  CK(cudaMemcpy(got.data(), C, got.size() * 2, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (uint32_t s = 0; s < 20000; ++s) {
    const uint32_t m = mix32(2 * s) % M, n = mix32(2 * s + 1) % N;
    float ref = 0;
    for (int k = 0; k < K; ++k) ref += element(m * K + k) * element(salt + n * K + k);
    uint32_t bits = static_cast<uint32_t>(got[static_cast<size_t>(m) * N + n]) << 16;
    float g;
    std::copy_n(reinterpret_cast<const char*>(&bits), 4, reinterpret_cast<char*>(&g));
    sum += g;
    if (!(std::fabs(g - ref) <= 0.01f * std::fabs(ref) + 0.01f)) {
      std::fprintf(stderr, "row %u column %u: got %g want %g\n", m, n, g, ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
