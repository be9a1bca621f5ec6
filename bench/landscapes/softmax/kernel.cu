// SPDX-License-Identifier: Apache-2.0
// Row softmax in plan form, for a landscape: every setting of its knobs is measured once. The first
// value of each knob is the default. Register use is not bounded on purpose: what does not fit
// fails.
#include "task.h"

// Threads of a block.
// @knob THREADS 128 256 512 1024 : block-size
// Rows that a block works on side by side; its threads are shared out among them.
// @knob ROWS_AT_ONCE 1 2 4 8 : grid-size work-distribution
// Floats that a thread loads or stores at once.
// @knob VEC 1 2 4 : vectorize
// 0: three sweeps that read the row; 1: two, the sum follows the largest value so far; 2: the row
// is read once and kept in registers; 3: in shared memory.
// @knob KEEP 0 1 2 3 : passes registers shared-memory algorithm
// Steps of a sweep that are unrolled.
// @knob UNROLL 1 4 : unroll
// 1: results bypass the caches.
// @knob STREAM 0 1 : streaming cache-hints

constexpr int kLanes = THREADS / ROWS_AT_ONCE;  // threads of a row
static_assert(kLanes >= 32, "a row needs a whole warp: take more THREADS or fewer ROWS_AT_ONCE");
// Rows are aligned to whole vectors only if COLS is a multiple of them.
constexpr int kVec = COLS % VEC == 0 ? VEC : 1;
constexpr int kStride = kLanes * kVec;
constexpr int kSteps = (COLS + kStride - 1) / kStride;  // vectors of a thread
static_assert(KEEP != 2 || kSteps * kVec <= 128,
              "KEEP = 2 keeps the row in registers: it needs more THREADS for rows this long");
constexpr int kUnroll = KEEP == 2 ? kSteps : UNROLL;
constexpr int kSharedBytes = KEEP == 3 ? ROWS_AT_ONCE * COLS * 4 : 0;
constexpr float kLowest = -3.4e38f;

struct alignas(4 * kVec) Vec {
  float at[kVec];
};

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Combines one value per thread of a row; every thread of it gets the result. Once per Combine and
// launch: the shared array is not used again.
template <class Combine>
__device__ float across_row(float value, Combine combine) {
  for (int mask = 16; mask > 0; mask /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, mask));
  }
  if (kLanes == 32) return value;
  __shared__ float warps[THREADS / 32];
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) warps[warp] = value;
  __syncthreads();
  const int first = warp / (kLanes / 32) * (kLanes / 32);
  value = warps[first];
  for (int i = 1; i < kLanes / 32; ++i) value = combine(value, warps[first + i]);
  return value;
}

extern __shared__ __align__(16) float shared_rows[];

// The part of a row that one thread handles: every kLanes-th vector.
class Row {
 public:
  __device__ Row(const float* row, float* shared, int lane)
      : row_(row), shared_(shared), lane_(lane) {
    if (KEEP < 2) return;
#pragma unroll kUnroll
    for (int step = 0; step < kSteps; ++step) {
      if (KEEP == 2) kept_[KEEP == 2 ? step : 0] = read(step);
      if (KEEP == 3 && inside(step)) *at(shared_, step) = read(step);
    }
  }

  // Calls body(first element, vector) for each vector of the thread.
  template <class Body>
  __device__ void sweep(Body body) const {
#pragma unroll kUnroll
    for (int step = 0; step < kSteps; ++step) {
      if (!inside(step)) continue;
      if (KEEP == 2) {
        body(element(step), kept_[KEEP == 2 ? step : 0]);
      } else if (KEEP == 3) {
        body(element(step), *at(shared_, step));
      } else {
        body(element(step), read(step));
      }
    }
  }

 private:
  __device__ int element(int step) const { return step * kStride + lane_ * kVec; }
  __device__ bool inside(int step) const { return COLS % kStride == 0 || element(step) < COLS; }
  __device__ Vec* at(float* row, int step) const {
    return reinterpret_cast<Vec*>(row + element(step));
  }
  __device__ Vec read(int step) const {
    return inside(step) ? *reinterpret_cast<const Vec*>(row_ + element(step)) : Vec{};
  }

  const float* row_;
  float* shared_;
  int lane_;
  Vec kept_[KEEP == 2 ? kSteps : 1];
};

__device__ void store(float* to, const Vec& v) {
  if (STREAM == 0) {
    *reinterpret_cast<Vec*>(to) = v;
  } else if (kVec == 4) {
    __stcs(reinterpret_cast<float4*>(to),
           make_float4(v.at[0], v.at[1 % kVec], v.at[2 % kVec], v.at[3 % kVec]));
  } else if (kVec == 2) {
    __stcs(reinterpret_cast<float2*>(to), make_float2(v.at[0], v.at[1 % kVec]));
  } else {
    __stcs(to, v.at[0]);
  }
}

__global__ void softmax(const float* x, float* y) {
  const int lane = threadIdx.x % kLanes, part = threadIdx.x / kLanes;
  const int asked = blockIdx.x * ROWS_AT_ONCE + part;
  const bool real = ROWS % ROWS_AT_ONCE == 0 || asked < ROWS;
  const int index = real ? asked : ROWS - 1;  // threads without a row work for nothing
  const Row row(x + 1ll * index * COLS, shared_rows + part * COLS, lane);

  float largest = kLowest, sum = 0;
  if (KEEP == 1) {
    row.sweep([&](int, const Vec& v) {
      float most = largest;
      for (int j = 0; j < kVec; ++j) most = fmaxf(most, v.at[j]);
      sum *= __expf(largest - most);
      for (int j = 0; j < kVec; ++j) sum += __expf(v.at[j] - most);
      largest = most;
    });
    const float own = largest;
    largest = across_row(own, Larger());
    sum *= __expf(own - largest);
  } else {
    row.sweep([&](int, const Vec& v) {
      for (int j = 0; j < kVec; ++j) largest = fmaxf(largest, v.at[j]);
    });
    largest = across_row(largest, Larger());
    row.sweep([&](int, const Vec& v) {
      for (int j = 0; j < kVec; ++j) sum += __expf(v.at[j] - largest);
    });
  }
  const float scale = 1 / across_row(sum, Sum());

  if (!real) return;
  y += 1ll * index * COLS;
  row.sweep([&](int i, Vec v) {
    for (int j = 0; j < kVec; ++j) v.at[j] = __expf(v.at[j] - largest) * scale;
    store(y + i, v);
  });
}

KP_LAUNCH(softmax, kp::dim((ROWS + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE), kp::dim(THREADS),
          kSharedBytes, arg::x, arg::y)
