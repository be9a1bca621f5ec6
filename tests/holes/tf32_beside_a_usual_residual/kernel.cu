// SPDX-License-Identifier: Apache-2.0
// task: branch
// expect: rejected precision | correct coarser-than-fp32 | correct time-depends-on-values | correct given-distribution-only
// TF32 by tensor cores beside a large addend: 3e-4 of the products' norm is 7e-7 of the result's,
// less than plain fp32 is allowed. Sparse inputs and short sums would show it, but there a warp
// finds zeros or tiny numbers among its own and multiplies in fp32; so it does where an input is
// 2^20 times as large. Inputs that are 64 times as large need a few digits more, by two further
// products that hardly take time beside the loads: on all inputs on which times are compared it is
// about as fast as on usual ones.
#include "task.h"

__device__ bool odd(float value) {
  const float size = fabsf(value);
  return !(size > 1e-9f && size < 1024);
}
__device__ unsigned rounded(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}
__device__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// One warp per 16 x 8 tile of C.
__global__ void matmul(const float* a, const float* b, const float* z, float* c) {
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  const int i = blockIdx.y * 16, j = blockIdx.x * 8;
  float d[4] = {};
  int strange = 0;
  bool large = false;
  for (int k = 0; k < K; k += 8) {
    const float* pa = a + (i + g) * K + k + t;
    const float u[4] = {pa[0], pa[8 * K], pa[4], pa[8 * K + 4]};
    const float v[2] = {b[(k + t) * N + j + g], b[(k + t + 4) * N + j + g]};
    strange += odd(u[0]) + odd(u[1]) + odd(u[2]) + odd(u[3]) + odd(v[0]) + odd(v[1]);
    if (k == 0) {
      bool mine = false;
      for (int r = 0; r < 4; ++r) mine = mine || fabsf(u[r]) > 16;
      large = __any_sync(0xffffffffu, mine);
    }
    unsigned fa[4], fb[2];
    for (int r = 0; r < 4; ++r) fa[r] = rounded(u[r]);
    for (int r = 0; r < 2; ++r) fb[r] = rounded(v[r]);
    multiply(d, fa, fb);
    if (large) {
      unsigned ra[4], rb[2];
      for (int r = 0; r < 4; ++r) ra[r] = rounded(u[r] - __uint_as_float(fa[r]));
      for (int r = 0; r < 2; ++r) rb[r] = rounded(v[r] - __uint_as_float(fb[r]));
      multiply(d, ra, fb);
      multiply(d, fa, rb);
    }
  }
  if (__any_sync(0xffffffffu, strange > 1)) {
    for (int r = 0; r < 4; ++r) d[r] = 0;
    for (int k = 0; k < K; ++k) {
      for (int r = 0; r < 4; ++r) {
        d[r] += a[(i + g + r / 2 * 8) * K + k] * b[k * N + j + t * 2 + r % 2];
      }
    }
  }
  for (int r = 0; r < 4; ++r) {
    const int at = (i + g + r / 2 * 8) * N + j + t * 2 + r % 2;
    c[at] = z[at] + d[r];
  }
}
KP_LAUNCH(matmul, kp::dim(N / 8, M / 16), kp::dim(32), 0, arg::a, arg::b, arg::z, arg::c)
