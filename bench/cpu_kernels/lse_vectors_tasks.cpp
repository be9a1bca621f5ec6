// SPDX-License-Identifier: Apache-2.0
// task: lse
// truth: vectorised=yes threads=all
// Copies and sums exp in one pass with vector extensions; partial sums per thread in double.
#include <cmath>

#include "task.h"

typedef float Vec __attribute__((vector_size(32), aligned(4)));
typedef int Ints __attribute__((vector_size(32)));

static inline Vec exp_of(Vec x) {
  x = x > -87.0f ? x : Vec{} - 87.0f;
  x = x < 88.0f ? x : Vec{} + 88.0f;
  const Vec n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const Vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Ints e = (__builtin_convertvector(n, Ints) + 127) << 23;
  return p * (Vec)e;
}

extern "C" void launch(const Args& args) {
  constexpr int block = 1024;
  double sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
  for (int b = 0; b < N / block; ++b) {
    const float* x = args.x + b * block;
    float* y = args.y + b * block;
    Vec s0{}, s1{};
    for (int i = 0; i < block; i += 16) {
      const Vec u = *reinterpret_cast<const Vec*>(x + i);
      const Vec v = *reinterpret_cast<const Vec*>(x + i + 8);
      *reinterpret_cast<Vec*>(y + i) = u;
      *reinterpret_cast<Vec*>(y + i + 8) = v;
      s0 += exp_of(u);
      s1 += exp_of(v);
    }
    s0 += s1;
    float part = 0;
    for (int l = 0; l < 8; ++l) part += s0[l];
    sum += part;
  }
  for (int i = N / block * block; i < N; ++i) {
    args.y[i] = args.x[i];
    sum += std::exp(args.x[i]);
  }
  args.y[N] = static_cast<float>(std::log(sum));
}
