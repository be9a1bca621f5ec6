// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Seven products of halves instead of eight, once.
#include "task.h"

constexpr int m = M / 2, n = N / 2, k = K / 2;
static_assert(M % 2 == 0 && N % 2 == 0 && K % 2 == 0);

static void combine(float* to, const float* x, const float* y, float sign, int rows, int columns, int stride) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) to[i * columns + j] = x[i * stride + j] + (y != nullptr ? sign * y[i * stride + j] : 0);
  }
}
static void multiply(const float* a, const float* b, float* c) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int p = 0; p < k; ++p) {
      for (int j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}

extern "C" void launch(const Args& args) {
  static float a[m * k], b[k * n], p[7][m * n];
  const float *a11 = args.a, *a12 = a11 + k, *a21 = a11 + m * K, *a22 = a21 + k;
  const float *b11 = args.b, *b12 = b11 + n, *b21 = b11 + k * N, *b22 = b21 + n;
  const struct {
    const float *x, *y;
    float sign;
    const float *u, *v;
    float other;
  } terms[7] = {{a11, a22, 1, b11, b22, 1},  {a21, a22, 1, b11, nullptr, 0},  {a11, nullptr, 0, b12, b22, -1}, {a22, nullptr, 0, b21, b11, -1},
                {a11, a12, 1, b22, nullptr, 0}, {a21, a11, -1, b11, b12, 1}, {a12, a22, -1, b21, b22, 1}};
  for (int t = 0; t < 7; ++t) {
    combine(a, terms[t].x, terms[t].y, terms[t].sign, m, k, K);
    combine(b, terms[t].u, terms[t].v, terms[t].other, k, n, N);
    multiply(a, b, p[t]);
  }
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      const int at = i * n + j;
      args.c[i * N + j] = p[0][at] + p[3][at] - p[4][at] + p[6][at];
      args.c[i * N + n + j] = p[2][at] + p[4][at];
      args.c[(m + i) * N + j] = p[1][at] + p[3][at];
      args.c[(m + i) * N + n + j] = p[0][at] - p[1][at] + p[2][at] + p[5][at];
    }
  }
}
