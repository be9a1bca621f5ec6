// SPDX-License-Identifier: Apache-2.0
#include <cuda_pipeline.h>
#include <mma.h>

#include "task.h"

// A block for each head: keys and values in shared memory, 16 rows of scores per warp and turn.
constexpr int kPitch = 72, kPitchS = 132;

__global__ void __launch_bounds__(128)
    attention(const __half* __restrict__ q, const __half* __restrict__ k,
              const __half* __restrict__ v, __half* __restrict__ y) {
  using namespace nvcuda;
  extern __shared__ __align__(128) unsigned char memory[];
  __half* ks = reinterpret_cast<__half*>(memory);
  __half* vs = ks + 128 * kPitch;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float* s = reinterpret_cast<float*>(vs + 128 * kPitch) + warp * 16 * kPitchS;
  __half* p = reinterpret_cast<__half*>(s);  // probabilities replace the scores, row by row
  q += blockIdx.x * 8192;
  k += blockIdx.x * 8192;
  v += blockIdx.x * 8192;
  y += blockIdx.x * 8192;
#pragma unroll
  for (int e = threadIdx.x; e < 1024; e += 128) {
    __pipeline_memcpy_async(ks + e / 8 * kPitch + e % 8 * 8, k + 8 * e, 16);
    __pipeline_memcpy_async(vs + e / 8 * kPitch + e % 8 * 8, v + 8 * e, 16);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
#pragma unroll 1
  for (int turn = 0; turn < 2; ++turn) {
    const int row0 = (warp + 4 * turn) * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fq[4];
#pragma unroll
    for (int d = 0; d < 4; ++d) wmma::load_matrix_sync(fq[d], q + row0 * 64 + 16 * d, 64);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
      wmma::fill_fragment(sum, 0.0f);
#pragma unroll
      for (int d = 0; d < 4; ++d) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fk;
        wmma::load_matrix_sync(fk, ks + 16 * n * kPitch + 16 * d, kPitch);
        wmma::mma_sync(sum, fq[d], fk, sum);
      }
      wmma::store_matrix_sync(s + 16 * n, sum, kPitchS, wmma::mem_row_major);
    }
    __syncwarp();
    float scale = 0;
#pragma unroll 4
    for (int r = 0; r < 16; ++r) {
      const float4 x = reinterpret_cast<const float4*>(s + r * kPitchS)[lane];
      float m = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
      for (int h = 16; h > 0; h /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, h));
      const float a = __expf(0.125f * (x.x - m)), b = __expf(0.125f * (x.y - m));
      const float c = __expf(0.125f * (x.z - m)), d = __expf(0.125f * (x.w - m));
      float total = (a + b) + (c + d);
      for (int h = 16; h > 0; h /= 2) total += __shfl_xor_sync(0xffffffffu, total, h);
      if (lane == r) scale = __fdividef(1.0f, total);
      __half2* out = reinterpret_cast<__half2*>(p + 2 * r * kPitchS + 4 * lane);
      out[0] = __floats2half2_rn(a, b);
      out[1] = __floats2half2_rn(c, d);
    }
    __syncwarp();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> o[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) wmma::fill_fragment(o[n], 0.0f);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fp;
      wmma::load_matrix_sync(fp, p + 16 * j, 2 * kPitchS);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fv;
        wmma::load_matrix_sync(fv, vs + 16 * j * kPitch + 16 * n, kPitch);
        wmma::mma_sync(o[n], fp, fv, o[n]);
      }
    }
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      wmma::store_matrix_sync(s + 16 * n, o[n], kPitchS, wmma::mem_row_major);
    }
    __syncwarp();
#pragma unroll 4
    for (int r = 0; r < 16; ++r) {
      const float2 x = reinterpret_cast<const float2*>(s + r * kPitchS)[lane];
      const float f = __shfl_sync(0xffffffffu, scale, r);
      reinterpret_cast<__half2*>(y + (row0 + r) * 64)[lane] = __floats2half2_rn(x.x * f, x.y * f);
    }
    __syncwarp();
  }
}

constexpr int kBytes = 2 * 128 * kPitch * 2 + 4 * 16 * kPitchS * 4;

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  attention<<<HEADS, 128, kBytes, stream>>>(args.q, args.k, args.v, args.y);
}
