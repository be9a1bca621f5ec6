// SPDX-License-Identifier: Apache-2.0
// Linear layer y = x * W^T + bias, bf16 in / bf16 out, fp32 accumulation on tensor cores.
// 128x128x64 tiles, three-stage cp.async pipeline, eight warps of 64x32.
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
static double time_us(F&& launch, int warm = 20, int iters = 50) {
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
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int kStages = 3;
constexpr int kThreads = 256;
constexpr int kChunks = BK / 8;  // 16-byte chunks in a row of a tile
constexpr int kStageElems = (BM + BN) * BK;

__device__ __forceinline__ int a_chunk(int row, int chunk) {
  return row * kChunks + (chunk ^ (row & 7));
}
__device__ __forceinline__ int b_chunk(int row, int chunk) {
  return row * kChunks + chunk;
}

__device__ __forceinline__ uint32_t smem_addr(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void copy16(bf16* dst, const bf16* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem_addr(dst)), "l"(src)
               : "memory");
}
__device__ __forceinline__ void ldsm4(uint32_t (&r)[4], const bf16* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem_addr(p))
               : "memory");
}
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void load_stage(bf16* stage, const bf16* __restrict__ x,
                                           const bf16* __restrict__ w, int K, int k0) {
  bf16* sa = stage;
  bf16* sb = stage + BM * BK;
#pragma unroll
  for (int i = 0; i < BM * kChunks / kThreads; ++i) {
    const int v = threadIdx.x + i * kThreads;
    const int row = v / kChunks, chunk = v % kChunks;
    copy16(sa + a_chunk(row, chunk) * 8, x + static_cast<size_t>(row) * K + k0 + chunk * 8);
    copy16(sb + b_chunk(row, chunk) * 8, w + static_cast<size_t>(row) * K + k0 + chunk * 8);
  }
}

__global__ void __launch_bounds__(kThreads, 2)
    linear_kernel(const bf16* __restrict__ x, const bf16* __restrict__ w,
                  const float* __restrict__ bias, bf16* __restrict__ y, int N, int K) {
  extern __shared__ __align__(128) unsigned char raw[];
  bf16* smem = reinterpret_cast<bf16*>(raw);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int wm = (warp & 1) * 64, wn = (warp >> 1) * 32;
  const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  const bf16* xt = x + static_cast<size_t>(m0) * K;
  const bf16* wt = w + static_cast<size_t>(n0) * K;

  float acc[4][4][4] = {};
  const int steps = K / BK;
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    load_stage(smem + s * kStageElems, xt, wt, K, s * BK);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  int slot = 0, fill = kStages - 1;
  for (int it = 0; it < steps; ++it) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    if (it + kStages - 1 < steps)
      load_stage(smem + fill * kStageElems, xt, wt, K, (it + kStages - 1) * BK);
    asm volatile("cp.async.commit_group;" ::: "memory");
    const bf16* sa = smem + slot * kStageElems;
    const bf16* sb = sa + BM * BK;
#pragma unroll
    for (int kk = 0; kk < BK / 16; ++kk) {
      uint32_t a[4][4], b[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        ldsm4(a[i], sa + a_chunk(wm + i * 16 + (lane & 15), kk * 2 + (lane >> 4)) * 8);
#pragma unroll
      for (int j = 0; j < 2; ++j)
        ldsm4(b[j], sb + b_chunk(wn + j * 16 + (lane & 7) + (lane >> 4) * 8,
                                 kk * 2 + ((lane >> 3) & 1)) * 8);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          mma(acc[i][j], a[i], b[j >> 1][(j & 1) * 2], b[j >> 1][(j & 1) * 2 + 1]);
    }
    slot = slot + 1 == kStages ? 0 : slot + 1;
    fill = fill + 1 == kStages ? 0 : fill + 1;
  }

#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int col = n0 + wn + j * 8 + (lane & 3) * 2;
    const float2 bb = *reinterpret_cast<const float2*>(bias + col);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = m0 + wm + i * 16 + (lane >> 2);
      *reinterpret_cast<__nv_bfloat162*>(y + static_cast<size_t>(row) * N + col) =
          __floats2bfloat162_rn(acc[i][j][0] + bb.x, acc[i][j][1] + bb.y);
      *reinterpret_cast<__nv_bfloat162*>(y + static_cast<size_t>(row + 8) * N + col) =
          __floats2bfloat162_rn(acc[i][j][2] + bb.x, acc[i][j][3] + bb.y);
    }
  }
}

__host__ __device__ inline float value(uint32_t i) {
  return static_cast<float>(static_cast<int>(mix32(i) & 255) - 128) * (1.0f / 128.0f);
}
__global__ void fill_kernel(bf16* p, uint32_t n, uint32_t seed) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = __float2bfloat16(value(i + seed));
}

int main() {
  const int M = 4096, N = 4096, K = 2048;
  const uint32_t seed_w = 0x20000000u, seed_b = 0x70000000u;
  bf16 *x, *w, *y;
  float* bias;
  CK(cudaMalloc(&x, sizeof(bf16) * M * K));
  CK(cudaMalloc(&w, sizeof(bf16) * N * K));
  CK(cudaMalloc(&y, sizeof(bf16) * M * N));
  CK(cudaMalloc(&bias, sizeof(float) * N));
  fill_kernel<<<1024, 256>>>(x, M * K, 0);
  fill_kernel<<<1024, 256>>>(w, N * K, seed_w);
  std::vector<float> hb(N);
  for (int i = 0; i < N; ++i) hb[i] = value(seed_b + i);
  CK(cudaMemcpy(bias, hb.data(), sizeof(float) * N, cudaMemcpyHostToDevice));

  const int smem = kStages * kStageElems * static_cast<int>(sizeof(bf16));
  CK(cudaFuncSetAttribute(linear_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const dim3 grid(N / BN, M / BM);
  const double us =
      time_us([&] { linear_kernel<<<grid, kThreads, smem>>>(x, w, bias, y, N, K); });

  std::vector<bf16> got(static_cast<size_t>(M) * N);
  CK(cudaMemcpy(got.data(), y, got.size() * sizeof(bf16), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (size_t i = 0; i < got.size(); i += 61) sum += __bfloat162float(got[i]);
  for (int s = 0; s < 2048; ++s) {
    const uint32_t r = mix32(s) % M, c = mix32(s + 77777) % N;
    double ref = hb[c];
    for (int k = 0; k < K; ++k)
      ref += static_cast<double>(value(r * K + k)) * value(seed_w + c * K + k);
    const double g = __bfloat162float(got[static_cast<size_t>(r) * N + c]);
    if (!(std::fabs(g - ref) <= 0.01 * std::fabs(ref) + 0.02)) {
      std::fprintf(stderr, "y[%u][%u]: got %g want %g\n", r, c, g, ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
