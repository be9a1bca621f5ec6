// SPDX-License-Identifier: Apache-2.0
// task: attention
// expect: correct
// Three bf16 parts: fp32.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "task.h"

static float bf16(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
  std::memcpy(&value, &bits, 4);
  return value;
}
static float product(float a, float b) {
  const float ah = bf16(a), am = bf16(a - ah), al = a - ah - am;
  const float bh = bf16(b), bm = bf16(b - bh), bl = b - bh - bm;
  return ah * bh + ((ah * bm + am * bh) + (am * bm + (ah * bl + al * bh)));
}

extern "C" void launch(const Args& args) {
  std::vector<float> p(KEYS);
  for (int i = 0; i < ROWS; ++i) {
    float largest = -1e30f, sum = 0;
    for (int j = 0; j < KEYS; ++j) {
      p[j] = 0;
      for (int d = 0; d < D; ++d) p[j] += product(args.q[i * D + d], args.k[j * D + d]);
      p[j] /= 8;
      largest = std::max(largest, p[j]);
    }
    for (int j = 0; j < KEYS; ++j) sum += p[j] = std::exp(p[j] - largest);
    float* y = args.y + i * D;
    for (int d = 0; d < D; ++d) y[d] = 0;
    for (int j = 0; j < KEYS; ++j) {
      for (int d = 0; d < D; ++d) y[d] += product(p[j], args.v[j * D + d]);
    }
    for (int d = 0; d < D; ++d) y[d] /= sum;
  }
}
