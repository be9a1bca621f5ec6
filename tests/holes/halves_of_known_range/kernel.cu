// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct given-distribution-only | rejected | wrong-result
// Splits each factor, times 128, into two halves (fp16, 22 bits in all) and multiplies them by
// tensor cores: as exact as fp32 for whatever is between 2^-12 and 511, which is where all probes
// are, and infinite above.
#include <cuda_fp16.h>

#include "task.h"

struct Parts {
  unsigned high, low;  // two halves each
};
__device__ Parts split(float u, float v) {
  u *= 128;
  v *= 128;
  const __half2 high = __floats2half2_rn(u, v);
  const __half2 low = __floats2half2_rn(u - __low2float(high), v - __high2float(high));
  return {*reinterpret_cast<const unsigned*>(&high), *reinterpret_cast<const unsigned*>(&low)};
}
__device__ void multiply(float* d, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// One warp per 16 x 8 tile of C.
__global__ void matmul(const float* a, const float* b, float* c) {
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  const int i = blockIdx.y * 16, j = blockIdx.x * 8;
  float large[4] = {}, small[4] = {};
  for (int k = 0; k < K; k += 16) {
    unsigned ah[4], al[4], bh[2], bl[2];
    for (int r = 0; r < 4; ++r) {
      const float* from = a + (i + g + r % 2 * 8) * K + k + 2 * t + r / 2 * 8;
      const Parts parts = split(from[0], from[1]);
      ah[r] = parts.high;
      al[r] = parts.low;
    }
    for (int r = 0; r < 2; ++r) {
      const float* from = b + (k + 2 * t + r * 8) * N + j + g;
      const Parts parts = split(from[0], from[N]);
      bh[r] = parts.high;
      bl[r] = parts.low;
    }
    multiply(small, ah, bl);
    multiply(small, al, bh);
    multiply(large, ah, bh);
  }
  for (int r = 0; r < 4; ++r) {
    c[(i + g + r / 2 * 8) * N + j + t * 2 + r % 2] = (large[r] + small[r]) * (1.0f / 16384);
  }
}
KP_LAUNCH(matmul, kp::dim(N / 8, M / 16), kp::dim(32), 0, arg::a, arg::b, arg::c)
