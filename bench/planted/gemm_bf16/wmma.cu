// SPDX-License-Identifier: Apache-2.0
// Half a flaw on Hopper: matrix instructions, but the warp-level ones (HMMA).
#include "task.h"
#include <mma.h>
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  using namespace nvcuda::wmma;
  __shared__ float out[8][16 * 16];
  const int warp = threadIdx.x / 32, row = blockIdx.y * 32 + warp / 4 * 16, column = blockIdx.x * 64 + warp % 4 * 16;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  for (int k = 0; k < K; k += 16) {
    fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __nv_bfloat16, row_major> fb;
    load_matrix_sync(fa, a + row * K + k, K);
    load_matrix_sync(fb, b + k * N + column, N);
    mma_sync(sum, fa, fb, sum);
  }
  store_matrix_sync(out[warp], sum, 16, mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x % 32; i < 256; i += 32) c[(row + i / 16) * N + column + i % 16] = __float2bfloat16(out[warp][i]);
}
KP_LAUNCH(gemm, kp::dim(N / 64, M / 32), kp::dim(256), 0, arg::a, arg::b, arg::c)
