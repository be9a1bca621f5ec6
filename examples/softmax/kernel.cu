// SPDX-License-Identifier: Apache-2.0
// Row softmax for a GPU, in plan form: device code, and at the end the launch as data. The
// structure is fixed here: a block of threads for each row, which is swept three times (largest
// value, sum of exponentials, result). The knobs choose the numbers; the first value of each is
// the default, and a poor one.
#include "task.h"

// Floats that a thread loads or stores at once.
// @knob VEC 1 2 4 : vectorize
// Threads for a row.
// @knob THREADS 32 64 128 256 512 1024 : block-size
// 1: the row is read once and kept in registers; 0: each sweep reads it again.
// @knob CACHE 0 1 : passes registers
// Loads in flight per thread when each sweep reads the row again.
// @knob UNROLL 1 2 4 8 : unroll

// Rows are aligned to whole vectors only if COLS is a multiple of them.
constexpr int kVec = COLS % VEC == 0 ? VEC : 1;
constexpr int kStride = THREADS * kVec;
constexpr int kSteps = (COLS + kStride - 1) / kStride;  // vectors of a thread
constexpr int kUnroll = CACHE ? kSteps : UNROLL;
static_assert(!CACHE || kSteps * kVec <= 128,
              "CACHE = 1 keeps the row in registers: it needs more THREADS for rows this long");

constexpr float kLowest = -3.4e38f;

struct alignas(4 * kVec) Vec {
  float at[kVec];
};

// Combines one value per thread; every thread gets the result.
template <class Combine>
__device__ float across_block(float value, Combine combine) {
  __shared__ float warps[THREADS / 32];
  for (int mask = 16; mask > 0; mask /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, mask));
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = warps[0];
  for (int warp = 1; warp < THREADS / 32; ++warp) value = combine(value, warps[warp]);
  return value;
}

// The part of a row that one thread handles: every THREADS-th vector.
class Row {
 public:
  __device__ explicit Row(const float* row) : row_(row) {
    if (CACHE) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) kept_[step] = read(step);
    }
  }

  // Calls body(first element, vector) for each vector of the thread.
  template <class Body>
  __device__ void sweep(Body body) const {
#pragma unroll kUnroll
    for (int step = 0; step < kSteps; ++step) {
      if (inside(step)) body(element(step), CACHE ? kept_[CACHE ? step : 0] : read(step));
    }
  }

 private:
  __device__ static int element(int step) { return step * kStride + threadIdx.x * kVec; }
  __device__ static bool inside(int step) { return COLS % kStride == 0 || element(step) < COLS; }
  __device__ Vec read(int step) const {
    return inside(step) ? *reinterpret_cast<const Vec*>(row_ + element(step)) : Vec{};
  }

  const float* row_;
  Vec kept_[CACHE ? kSteps : 1];
};

__global__ void __launch_bounds__(THREADS) softmax(const float* x, float* y) {
  const Row row(x + 1ll * blockIdx.x * COLS);
  y += 1ll * blockIdx.x * COLS;

  float largest = kLowest;
  row.sweep([&](int, const Vec& v) {
    for (int j = 0; j < kVec; ++j) largest = fmaxf(largest, v.at[j]);
  });
  largest = across_block(largest, [](float a, float b) { return fmaxf(a, b); });

  float sum = 0;
  row.sweep([&](int, const Vec& v) {
    for (int j = 0; j < kVec; ++j) sum += __expf(v.at[j] - largest);
  });
  const float scale = 1 / across_block(sum, [](float a, float b) { return a + b; });

  row.sweep([&](int i, Vec v) {
    for (int j = 0; j < kVec; ++j) v.at[j] = __expf(v.at[j] - largest) * scale;
    *reinterpret_cast<Vec*>(y + i) = v;
  });
}

KP_LAUNCH(softmax, kp::dim(ROWS), kp::dim(THREADS), 0, arg::x, arg::y)
