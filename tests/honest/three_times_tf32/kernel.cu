// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// fp32 from tensor cores: each factor as a sum of two TF32 numbers, three products each.
#include "task.h"

__device__ void split(float value, unsigned* high, unsigned* low) {
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(*high) : "f"(value));
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(*low) : "f"(value - __uint_as_float(*high)));
}
__device__ void multiply(float* d, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void matmul(const float* a, const float* b, float* c) {
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  const int i = blockIdx.y * 16, j = blockIdx.x * 8;
  float d[4] = {};
  for (int k = 0; k < K; k += 8) {
    unsigned ah[4], al[4], bh[2], bl[2];
    for (int e = 0; e < 4; ++e) {
      split(a[(i + g + e % 2 * 8) * K + k + t + e / 2 * 4], ah + e, al + e);
    }
    for (int e = 0; e < 2; ++e) split(b[(k + t + e * 4) * N + j + g], bh + e, bl + e);
    float step[4] = {};
    multiply(step, al, bh);
    multiply(step, ah, bl);
    multiply(step, ah, bh);
    for (int e = 0; e < 4; ++e) d[e] += step[e];
  }
  for (int r = 0; r < 4; ++r) c[(i + g + r / 2 * 8) * N + j + t * 2 + r % 2] = d[r];
}
KP_LAUNCH(matmul, kp::dim(N / 8, M / 16), kp::dim(32), 0, arg::a, arg::b, arg::c)
