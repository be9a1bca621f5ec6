// SPDX-License-Identifier: Apache-2.0
#include <cuda_pipeline.h>
#include <mma.h>

#include "task.h"

// A block of four warps for each product, 16 rows a warp; eight blocks of a multiprocessor read and
// write past each other.
constexpr int kPitch = 72, kPitchOut = 68;

__global__ void __launch_bounds__(128)
    multiply(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c) {
  using namespace nvcuda;
  __shared__ __align__(128) __half as[64 * kPitch], bs[64 * kPitch];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  a += blockIdx.x * 4096;
  b += blockIdx.x * 4096;
  c += blockIdx.x * 4096;
#pragma unroll
  for (int e = t; e < 512; e += 128) {
    __pipeline_memcpy_async(as + e / 8 * kPitch + e % 8 * 8, a + 8 * e, 16);
    __pipeline_memcpy_async(bs + e / 8 * kPitch + e % 8 * 8, b + 8 * e, 16);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) wmma::fill_fragment(sum[j], 0.0f);
#pragma unroll
  for (int k = 0; k < 64; k += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::load_matrix_sync(fa, as + 16 * warp * kPitch + k, kPitch);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
      wmma::load_matrix_sync(fb, bs + k * kPitch + 16 * j, kPitch);
      wmma::mma_sync(sum[j], fa, fb, sum[j]);
    }
  }
  __syncthreads();
  // The warp's 16 rows, over half of what `as` and `bs` were.
  float* out = reinterpret_cast<float*>(warp < 2 ? as : bs) + warp % 2 * 16 * kPitchOut;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    wmma::store_matrix_sync(out + 16 * j, sum[j], kPitchOut, wmma::mem_row_major);
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int r = 4 * k + lane / 8, j = lane % 8 * 8;
    const float4 u = *reinterpret_cast<const float4*>(out + r * kPitchOut + j);
    const float4 v = *reinterpret_cast<const float4*>(out + r * kPitchOut + j + 4);
    const __half2 pack[4] = {__floats2half2_rn(u.x, u.y), __floats2half2_rn(u.z, u.w),
                             __floats2half2_rn(v.x, v.y), __floats2half2_rn(v.z, v.w)};
    uint4 raw;
    memcpy(&raw, pack, 16);
    reinterpret_cast<uint4*>(c + (16 * warp + r) * 64)[lane % 8] = raw;
  }
}
static_assert(2 * 16 * kPitchOut * 4 <= 64 * kPitch * 2);

extern "C" void launch(const Args& args, cudaStream_t stream) {
  multiply<<<COUNT, 128, 0, stream>>>(args.a, args.b, args.c);
}
