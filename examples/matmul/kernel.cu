// SPDX-License-Identifier: Apache-2.0
// Matrix product for a GPU, in plan form: device code, and at the end the launch as data. The
// structure is fixed here: a block of TX x TY threads computes a tile of c; for each slice of k it
// copies the tiles of a and b that it needs into shared memory; each thread keeps TM x TN elements
// of c in registers. The knobs choose the numbers; the first value of each is the default, and a
// poor one.
#include "task.h"

// Threads along the columns and the rows of a tile.
// @knob TX 16 8 32 : block-size
// @knob TY 16 8 32 : block-size
// Elements of c per thread: rows and columns.
// @knob TM 1 2 4 8 : tile-size registers
// @knob TN 1 2 4 8 : tile-size registers
// The slice of k that lies in shared memory.
// @knob BK 8 16 32 : tile-size shared-memory
// Floats that a thread loads or stores at once.
// @knob VEC 1 2 4 : vectorize

constexpr int kThreads = TX * TY;
constexpr int kPart = 1024;     // a multiple of BK
constexpr int kRows = TY * TM;  // the block's tile of c
constexpr int kCols = TX * TN;
// Rows are aligned to whole vectors only if their lengths are multiples of them.
constexpr int kVec = K % VEC == 0 && N % VEC == 0 ? VEC : 1;

struct alignas(4 * kVec) Vec {
  float at[kVec];
};

// The vector at (row, col) of a matrix; zeros outside it.
__device__ Vec load(const float* matrix, int rows, int cols, int row, int col) {
  if (row >= rows || col >= cols) return Vec{};
  return *reinterpret_cast<const Vec*>(matrix + 1ll * row * cols + col);
}

// Where element i of a thread lies in its tile. Groups of up to 4 neighbours can be read at once,
// and neighbouring threads read neighbouring groups, which keeps shared memory free of conflicts.
template <int per_thread, int threads>
__device__ constexpr int place(int thread, int i) {
  constexpr int kGroup = per_thread < 4 ? per_thread : 4;
  return (i / kGroup * threads + thread) * kGroup + i % kGroup;
}

__global__ void __launch_bounds__(kThreads) matmul(const float* a, const float* b, float* c) {
  __shared__ __align__(16) float a_tile[BK][kRows + 4];  // transposed
  __shared__ __align__(16) float b_tile[BK][kCols];
  const int thread = threadIdx.x, tx = thread % TX, ty = thread / TX;
  const int first_row = blockIdx.y * kRows, first_col = blockIdx.x * kCols;
  // A sum of kPart products is added to c before the next one begins: fewer roundings of large
  // sums.
  for (int part = 0; part < K; part += kPart) {
    const int end = part + kPart < K ? part + kPart : K;
    float sum[TM][TN] = {};
    for (int k = part; k < end; k += BK) {
      for (int i = thread * kVec; i < kRows * BK; i += kThreads * kVec) {
        const Vec v = load(a, M, K, first_row + i / BK, k + i % BK);
        for (int j = 0; j < kVec; ++j) a_tile[i % BK + j][i / BK] = v.at[j];
      }
      for (int i = thread * kVec; i < kCols * BK; i += kThreads * kVec) {
        const Vec v = load(b, K, N, k + i / kCols, first_col + i % kCols);
        *reinterpret_cast<Vec*>(&b_tile[i / kCols][i % kCols]) = v;
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < BK; ++i) {
        float x[TM], y[TN];
        for (int m = 0; m < TM; ++m) x[m] = a_tile[i][place<TM, TY>(ty, m)];
        for (int n = 0; n < TN; ++n) y[n] = b_tile[i][place<TN, TX>(tx, n)];
        for (int m = 0; m < TM; ++m) {
          for (int n = 0; n < TN; ++n) sum[m][n] += x[m] * y[n];
        }
      }
      __syncthreads();
    }
    for (int m = 0; m < TM; ++m) {
      for (int n = 0; n < TN; ++n) {
        const int row = first_row + place<TM, TY>(ty, m), col = first_col + place<TN, TX>(tx, n);
        if (row >= M || col >= N) continue;
        float* const at = c + 1ll * row * N + col;
        *at = part == 0 ? sum[m][n] : *at + sum[m][n];
      }
    }
  }
}

KP_LAUNCH(matmul, kp::dim((N + kCols - 1) / kCols, (M + kRows - 1) / kRows), kp::dim(kThreads), 0,
          arg::a, arg::b, arg::c)
