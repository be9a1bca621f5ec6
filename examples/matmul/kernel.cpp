// SPDX-License-Identifier: Apache-2.0
// Matrix product for a CPU, the way of BLIS (Van Zee, van de Geijn, 2015). The structure is fixed
// here: k is cut into slices; a slice of b is copied into panels that the innermost loop reads in
// order, blocks of rows of a likewise, each thread its own; a micro-kernel holds a tile of c in
// registers. The knobs choose the numbers; the first value of each is the default, and a poor one.
#include <algorithm>
#include <cstring>
#include <vector>

#include "task.h"

// Floats that one instruction handles; 1 is scalar code.
// @knob VEC 1 4 8 16 : vectorize
// Threads that share the blocks of rows.
// @knob THREADS 1 2 4 8 16 32 64 : threads
// The tile of c in registers: MR rows of NR vectors.
// @knob MR 4 6 8 12 : tile-size registers
// @knob NR 1 2 3 : tile-size unroll
// The slice of k (a panel of b fits the first-level cache) and the block of rows (a block of a fits
// the second-level cache).
// @knob KC 64 128 256 512 : tile-size
// @knob MC 24 48 96 192 : tile-size

// VEC alone decides the vector width: the compiler may not vectorise by itself, so that VEC = 1 is
// honest scalar code.
#pragma GCC optimize("no-tree-vectorize")

template <class T, int count>
struct Vector {
  typedef T Type __attribute__((vector_size(sizeof(T) * count), aligned(sizeof(T))));
};
template <class T>
struct Vector<T, 1> {
  typedef T Type;
};
using Vec = Vector<float, VEC>::Type;

constexpr int kWidth = NR * VEC;  // columns of a tile
constexpr int kPanels = (N + kWidth - 1) / kWidth;

// Slice [k, k + depth) of b, panel by panel: depth rows of kWidth columns, filled up with zeros.
void pack_b(const float* b, int k, int depth, float* packed) {
#pragma omp for
  for (int panel = 0; panel < kPanels; ++panel) {
    const int n = panel * kWidth;
    const int count = std::min(kWidth, N - n);
    float* out = packed + 1ll * n * depth;
    for (int i = 0; i < depth; ++i, out += kWidth) {
      std::memcpy(out, b + (1ll * k + i) * N + n, 4 * count);
      std::fill(out + count, out + kWidth, 0.0f);
    }
  }
}

// Rows [m, m + rows) of the slice of a, MR rows at a time: for each k, MR elements.
void pack_a(const float* a, int m, int rows, int k, int depth, float* packed) {
  for (int tile = 0; tile < rows; tile += MR) {
    for (int i = 0; i < depth; ++i) {
      for (int r = 0; r < MR; ++r) {
        *packed++ = tile + r < rows ? a[(1ll * m + tile + r) * K + k + i] : 0.0f;
      }
    }
  }
}

// c += a b for one tile; `rows` and `columns` of it lie inside c.
void micro_kernel(const float* a, const float* b, int depth, float* c, int rows, int columns) {
  Vec sum[MR][NR]{};
  for (int i = 0; i < depth; ++i, a += MR, b += kWidth) {
    const Vec* row = reinterpret_cast<const Vec*>(b);
#pragma GCC unroll 16
    for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < NR; ++v) sum[r][v] += a[r] * row[v];
    }
  }
  if (rows == MR && columns == kWidth) {
#pragma GCC unroll 16
    for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < NR; ++v) *reinterpret_cast<Vec*>(c + 1ll * r * N + v * VEC) += sum[r][v];
    }
    return;
  }
  float tile[MR][kWidth];
  std::memcpy(tile, sum, sizeof tile);
  for (int r = 0; r < rows; ++r) {
    for (int n = 0; n < columns; ++n) c[1ll * r * N + n] += tile[r][n];
  }
}

extern "C" void launch(const Args& args) {
  std::vector<float> b_packed(1ll * kPanels * kWidth * KC);
#pragma omp parallel num_threads(THREADS)
  {
    std::vector<float> a_packed((MC + MR) * KC);
    for (int k = 0; k < K; k += KC) {
      const int depth = std::min(KC, K - k);
      pack_b(args.b, k, depth, b_packed.data());
#pragma omp for schedule(dynamic)
      for (int m = 0; m < M; m += MC) {
        const int rows = std::min(MC, M - m);
        if (k == 0) std::fill_n(args.c + 1ll * m * N, 1ll * rows * N, 0.0f);
        pack_a(args.a, m, rows, k, depth, a_packed.data());
        for (int n = 0; n < N; n += kWidth) {
          for (int r = 0; r < rows; r += MR) {
            micro_kernel(&a_packed[1ll * r * depth], &b_packed[1ll * n * depth], depth,
                         args.c + (1ll * m + r) * N + n, std::min(MR, rows - r),
                         std::min(kWidth, N - n));
          }
        }
      }
    }
  }
}
