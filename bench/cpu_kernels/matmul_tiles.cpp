// SPDX-License-Identifier: Apache-2.0
// task: matmul
// truth: vectorised=yes threads=all
// Register tiles of MR x 2 vectors; columns and rows that no tile holds are peeled.
#include "task.h"

namespace {
#if defined(__AVX512F__)
constexpr int W = 16;
#else
constexpr int W = 8;
#endif
typedef float Vec __attribute__((vector_size(4 * W), aligned(4)));
constexpr int MR = 6;

template <int R, int V>
inline void tile(const float* a, const float* b, float* c) {
  Vec sum[R][V] = {};
  for (int k = 0; k < K; ++k) {
    Vec col[V];
    for (int v = 0; v < V; ++v) col[v] = *reinterpret_cast<const Vec*>(b + long(k) * N + v * W);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const float s = a[long(r) * K + k];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] += s * col[v];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) *reinterpret_cast<Vec*>(c + long(r) * N + v * W) = sum[r][v];
}

template <int R>
inline void rows(const float* a, const float* b, float* c) {
  int j = 0;
  for (; j + 2 * W <= N; j += 2 * W) tile<R, 2>(a, b + j, c + j);
  for (; j + W <= N; j += W) tile<R, 1>(a, b + j, c + j);
  for (j = N / W * W; j < N; ++j) {
    for (int r = 0; r < R; ++r) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += a[long(r) * K + k] * b[long(k) * N + j];
      c[long(r) * N + j] = sum;
    }
  }
}
}  // namespace

extern "C" void launch(const Args& args) {
  constexpr int whole = M / MR;
#pragma omp parallel
  {
#pragma omp for nowait
    for (int t = 0; t < whole; ++t)
      rows<MR>(args.a + long(t) * MR * K, args.b, args.c + long(t) * MR * N);
#pragma omp for
    for (int i = whole * MR; i < M; ++i)
      rows<1>(args.a + long(i) * K, args.b, args.c + long(i) * N);
  }
}
