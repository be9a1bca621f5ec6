// SPDX-License-Identifier: Apache-2.0
#include <cuda_pipeline.h>
#include <mma.h>

#include "task.h"

// 128 x 128 results per block, three stages of cp.async.
constexpr int kTile = 128, kDepth = 32, kStages = 3, kPitchA = kDepth + 8, kPitchB = kTile + 8;
constexpr int kStage = kTile * kPitchA + kDepth * kPitchB;  // elements: a tile of a, a tile of b
static_assert(M % kTile == 0 && N % kTile == 0 && K % kDepth == 0);

__device__ inline void fetch(__half* to, const __half* a, const __half* b) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int e = threadIdx.x + 256 * h;
    __pipeline_memcpy_async(to + e / 4 * kPitchA + e % 4 * 8, a + e / 4 * K + e % 4 * 8, 16);
    __pipeline_memcpy_async(to + kTile * kPitchA + e / 16 * kPitchB + e % 16 * 8,
                            b + e / 16 * N + e % 16 * 8, 16);
  }
}

__global__ void __launch_bounds__(256)
    gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c) {
  using namespace nvcuda;
  extern __shared__ __align__(128) unsigned char memory[];
  __half* stages = reinterpret_cast<__half*>(memory);
  const int t = threadIdx.x, warp = t / 32;
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  const int wr = warp / 4 * 64, wc = warp % 4 * 32;
  a += row0 * K;
  b += column0;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4][2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
  }
  constexpr int kSteps = K / kDepth;
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < kSteps) fetch(stages + s * kStage, a + s * kDepth, b + s * kDepth * N);
    __pipeline_commit();
  }
#pragma unroll 1
  for (int s = 0; s < kSteps; ++s) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    const int next = s + kStages - 1;
    if (next < kSteps) {
      fetch(stages + next % kStages * kStage, a + next * kDepth, b + next * kDepth * N);
    }
    __pipeline_commit();
    const __half* as = stages + s % kStages * kStage;
    const __half* bs = as + kTile * kPitchA;
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[4];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb[2];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        wmma::load_matrix_sync(fa[i], as + (wr + 16 * i) * kPitchA + k, kPitchA);
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        wmma::load_matrix_sync(fb[j], bs + k * kPitchB + wc + 16 * j, kPitchB);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
      }
    }
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  float* out = reinterpret_cast<float*>(memory);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(out + (wr + 16 * i) * kTile + wc + 16 * j, sum[i][j], kTile,
                              wmma::mem_row_major);
    }
  }
  __syncthreads();
#pragma unroll 4
  for (int e = t; e < kTile * kTile / 2; e += 256) {
    const int r = e / (kTile / 2), q = e % (kTile / 2) * 2;
    *reinterpret_cast<__half2*>(c + (row0 + r) * N + column0 + q) =
        __floats2half2_rn(out[r * kTile + q], out[r * kTile + q + 1]);
  }
}

constexpr int kBytes =
    kTile * kTile * 4 > 2 * kStages* kStage ? kTile* kTile * 4 : 2 * kStages* kStage;

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  gemm<<<dim3(N / kTile, M / kTile), 256, kBytes, stream>>>(args.a, args.b, args.c);
}
