// SPDX-License-Identifier: Apache-2.0
// Matrix product in plan form, for a landscape: every setting of its knobs is measured once. A
// block computes a BM x BN tile of c from slices of k that pass through shared memory; each thread
// keeps TM x TN elements in registers. The first value of each knob is the default. Register use is
// not bounded on purpose: what does not fit fails.
#include "task.h"

// The tile of c that a block computes: rows and columns.
// @knob BM 32 64 128 : tile-size grid-size
// @knob BN 32 64 128 : tile-size grid-size
// The slice of k that lies in shared memory.
// @knob BK 8 16 32 : tile-size shared-memory
// Elements of c per thread: rows and columns.
// @knob TM 2 4 8 : registers block-size
// @knob TN 4 8 : registers block-size
// 2: the next slice is fetched to registers while this one is multiplied.
// @knob STAGES 1 2 : pipeline synchronization
// Floats that a thread copies at once.
// @knob VEC 1 4 : vectorize

constexpr int kThreadsN = BN / TN, kThreadsM = BM / TM;
constexpr int kThreads = kThreadsM * kThreadsN;
static_assert(kThreads >= 32, "a block needs a whole warp: take larger tiles or smaller TM, TN");
// Rows are aligned to whole vectors only if their lengths are multiples of them.
constexpr int kVec = K % VEC == 0 && N % VEC == 0 ? VEC : 1;
constexpr bool kWhole = M % BM == 0 && N % BN == 0 && K % BK == 0;
constexpr int kACopies = (BM * BK / kVec + kThreads - 1) / kThreads;  // of a thread for a slice
constexpr int kBCopies = (BN * BK / kVec + kThreads - 1) / kThreads;

struct alignas(4 * kVec) Vec {
  float at[kVec];
};

struct Slices {
  alignas(16) float a[BK][BM + 4];  // transposed
  alignas(16) float b[BK][BN];
};

// The vector at (row, col) of a matrix; zeros outside it.
__device__ Vec load(const float* matrix, int rows, int cols, int row, int col) {
  if (!kWhole && (row >= rows || col >= cols)) return Vec{};
  return *reinterpret_cast<const Vec*>(matrix + 1ll * row * cols + col);
}

// A thread's part of the slices of a and b that begin at k, on its way to shared memory.
struct Fetched {
  Vec a[kACopies], b[kBCopies];

  __device__ void fetch(const float* from_a, const float* from_b, int row, int col, int k) {
#pragma unroll
    for (int i = 0; i < kACopies; ++i) {
      const int e = (i * kThreads + static_cast<int>(threadIdx.x)) * kVec;
      if (e < BM * BK) a[i] = load(from_a, M, K, row + e / BK, k + e % BK);
    }
#pragma unroll
    for (int i = 0; i < kBCopies; ++i) {
      const int e = (i * kThreads + static_cast<int>(threadIdx.x)) * kVec;
      if (e < BN * BK) b[i] = load(from_b, K, N, k + e / BN, col + e % BN);
    }
  }
  __device__ void put(Slices* to) const {
#pragma unroll
    for (int i = 0; i < kACopies; ++i) {
      const int e = (i * kThreads + static_cast<int>(threadIdx.x)) * kVec;
      if (e >= BM * BK) continue;
      for (int j = 0; j < kVec; ++j) to->a[e % BK + j][e / BK] = a[i].at[j];
    }
#pragma unroll
    for (int i = 0; i < kBCopies; ++i) {
      const int e = (i * kThreads + static_cast<int>(threadIdx.x)) * kVec;
      if (e < BN * BK) *reinterpret_cast<Vec*>(&to->b[e / BN][e % BN]) = b[i];
    }
  }
};

// Where element i of a thread lies in its tile. Groups of up to 4 neighbours can be read at once,
// and neighbouring threads read neighbouring groups, which keeps shared memory free of conflicts.
template <int per_thread, int threads>
__device__ constexpr int place(int thread, int i) {
  constexpr int kGroup = per_thread < 4 ? per_thread : 4;
  return (i / kGroup * threads + thread) * kGroup + i % kGroup;
}

__device__ void multiply(const Slices& slices, int tx, int ty, float (&sum)[TM][TN]) {
#pragma unroll 8
  for (int i = 0; i < BK; ++i) {
    float x[TM], y[TN];
    for (int m = 0; m < TM; ++m) x[m] = slices.a[i][place<TM, kThreadsM>(ty, m)];
    for (int n = 0; n < TN; ++n) y[n] = slices.b[i][place<TN, kThreadsN>(tx, n)];
    for (int m = 0; m < TM; ++m) {
      for (int n = 0; n < TN; ++n) sum[m][n] += x[m] * y[n];
    }
  }
}

__global__ void matmul(const float* a, const float* b, float* c) {
  __shared__ Slices slices[STAGES];
  const int tx = threadIdx.x % kThreadsN, ty = threadIdx.x / kThreadsN;
  const int row = blockIdx.y * BM, col = blockIdx.x * BN;
  float sum[TM][TN] = {};
  Fetched fetched;

  if (STAGES == 1) {
#pragma unroll 1
    for (int k = 0; k < K; k += BK) {
      fetched.fetch(a, b, row, col, k);
      fetched.put(&slices[0]);
      __syncthreads();
      multiply(slices[0], tx, ty, sum);
      __syncthreads();
    }
  } else {
    fetched.fetch(a, b, row, col, 0);
    fetched.put(&slices[0]);
    __syncthreads();
    int now = 0;
#pragma unroll 1
    for (int k = 0; k < K; k += BK) {
      const bool more = k + BK < K;
      if (more) fetched.fetch(a, b, row, col, k + BK);
      multiply(slices[now], tx, ty, sum);
      if (more) fetched.put(&slices[(now + 1) % STAGES]);
      __syncthreads();
      now = (now + 1) % STAGES;
    }
  }

  for (int m = 0; m < TM; ++m) {
    for (int n = 0; n < TN; ++n) {
      const int i = row + place<TM, kThreadsM>(ty, m), j = col + place<TN, kThreadsN>(tx, n);
      if (kWhole || (i < M && j < N)) c[1ll * i * N + j] = sum[m][n];
    }
  }
}

KP_LAUNCH(matmul, kp::dim((N + BN - 1) / BN, (M + BM - 1) / BM), kp::dim(kThreads), 0, arg::a,
          arg::b, arg::c)
