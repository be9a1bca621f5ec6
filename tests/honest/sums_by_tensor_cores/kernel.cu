// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Sums of halves as products with ones: exact products, sums in fp32, by tensor cores. A warp takes
// 16 rows and a quarter of their columns.
#include <cuda_fp16.h>

#include "task.h"

constexpr int kWarps = 4, kPart = COLS / kWarps;
static_assert(COLS % (16 * kWarps) == 0);

__global__ void rowsum(const __half* x, float* y) {
  __shared__ float parts[kWarps][16];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int upper = min(blockIdx.x * 16 + g, ROWS - 1),
            lower = min(blockIdx.x * 16 + g + 8, ROWS - 1);
  const unsigned ones = 0x3c003c00u;
  float total[2] = {};
  for (int k = warp * kPart; k < (warp + 1) * kPart; k += 256) {
    float d[4] = {};
    for (int s = k; s < min(k + 256, (warp + 1) * kPart); s += 16) {
      const __half* from[4] = {
          x + 1ll * upper * COLS + s + 2 * t, x + 1ll * lower * COLS + s + 2 * t,
          x + 1ll * upper * COLS + s + 2 * t + 8, x + 1ll * lower * COLS + s + 2 * t + 8};
      unsigned a[4];
      for (int r = 0; r < 4; ++r) a[r] = *reinterpret_cast<const unsigned*>(from[r]);
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
          "{%8,%9}, {%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(ones), "r"(ones));
    }
    total[0] += d[0];
    total[1] += d[2];
  }
  if (t == 0) {
    parts[warp][g] = total[0];
    parts[warp][g + 8] = total[1];
  }
  __syncthreads();
  const int row = blockIdx.x * 16 + threadIdx.x;
  if (threadIdx.x >= 16 || row >= ROWS) return;
  float sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += parts[w][threadIdx.x];
  y[row] = sum;
}
KP_LAUNCH(rowsum, kp::dim((ROWS + 15) / 16), kp::dim(32 * kWarps), 0, arg::x, arg::y)
