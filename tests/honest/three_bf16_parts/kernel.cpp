// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// fp32 from three bf16 parts of each factor, six products: all 24 bits.
#include <cstring>

#include "task.h"

static float bf16(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
  std::memcpy(&value, &bits, 4);
  return value;
}
static float product(float a, float b) {
  const float ah = bf16(a), am = bf16(a - ah), al = bf16(a - ah - am);
  const float bh = bf16(b), bm = bf16(b - bh), bl = bf16(b - bh - bm);
  return ah * bh + (ah * bm + am * bh + (am * bm + (ah * bl + al * bh)));
}
extern "C" void launch(const Args& args) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += product(args.a[i * K + k], args.b[k * N + j]);
      args.c[i * N + j] = sum;
    }
  }
}
