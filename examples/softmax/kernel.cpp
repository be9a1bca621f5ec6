// SPDX-License-Identifier: Apache-2.0
// Row softmax for a CPU. The structure is fixed here: threads share the rows, and a row goes
// through three stages: its largest value, its exponentials and their sum, its results. Each stage
// is a sweep over the row; with OVERLAP = 1 three neighbouring rows share one sweep. The knobs
// choose the numbers; the first value of each is the default, and a poor one.
#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "task.h"

// Floats that one instruction handles; 1 is scalar code.
// @knob VEC 1 4 8 16 : vectorize
// Threads that share the rows.
// @knob THREADS 1 2 4 8 16 32 64 : threads
// 1: a sweep finds the next row's largest value, computes this row's exponentials and stores the
// results of the row before, so that memory and arithmetic are busy at the same time.
// @knob OVERLAP 0 1 : pipeline
// 1: the result bypasses the cache, so that its old contents are not read first.
// @knob STREAM 0 1 : streaming
// 1: another row is fetched ahead while exponentials are computed.
// @knob PREFETCH 0 1 : pipeline
// Streaming stores take 4 floats at a time.
// @require STREAM == 0 || VEC >= 4

// VEC alone decides the vector width: the compiler may not vectorise by itself, so that VEC = 1 is
// honest scalar code.
#pragma GCC optimize("no-tree-vectorize")

constexpr float kLog2E = 1.44269504f;  // exp(x) = 2^(x log2 e)

template <class T, int count>
struct Vector {
  typedef T Type __attribute__((vector_size(sizeof(T) * count), aligned(sizeof(T))));
};
template <class T>
struct Vector<T, 1> {
  typedef T Type;
};
using Vec = Vector<float, VEC>::Type;
using IntVec = Vector<int, VEC>::Type;

// `count` floats at p, the rest of the vector filled up.
inline Vec load(const float* p, int count, float fill) {
  if (count >= VEC) return *reinterpret_cast<const Vec*>(p);
  Vec v = fill - Vec{};
  std::memcpy(&v, p, 4 * count);
  return v;
}

inline void store(float* p, int count, Vec v) {
  if (count >= VEC) {
    *reinterpret_cast<Vec*>(p) = v;
  } else {
    std::memcpy(p, &v, 4 * count);
  }
}

// Tensors are aligned to 64 bytes; so are whole vectors in a row, unless COLS forbids it.
inline void store_result(float* p, int count, Vec v) {
  if (!STREAM || COLS % VEC != 0) return store(p, count, v);
#if VEC == 16 && defined(__AVX512F__)
  _mm512_stream_ps(p, v);  // a whole cache line: the cheapest to write
#elif VEC == 8 && defined(__AVX__)
  _mm256_stream_ps(p, v);
#elif VEC >= 4
  __m128 parts[VEC / 4];
  std::memcpy(parts, &v, sizeof v);
  for (int i = 0; i < VEC / 4; ++i) _mm_stream_ps(p + 4 * i, parts[i]);
#endif
}

// All elements of v combined, by halves.
template <class Combine>
float across(Vec v, Combine combine) {
  float lanes[VEC];
  std::memcpy(lanes, &v, sizeof lanes);
  for (int half = VEC / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] = combine(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}

inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }

// 2^t for t <= 0, to about 4e-6: 2^n times a polynomial for the fraction t - n in [-1/2, 1/2].
// Results below 2^-126 are as good as zero.
inline Vec power_of_two(Vec t) {
  t = larger(Vec{} - 126.0f, t);
  const Vec shifted = t + 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
  const Vec f = t - (shifted - 12582912.0f);
  Vec p = 9.66636852e-03f * f + 5.59219758e-02f;
  p = p * f + 2.40223490e-01f;
  p = p * f + 6.93121045e-01f;
  p = p * f + 1.0f;
  const IntVec bits = __builtin_bit_cast(IntVec, shifted) << 23;  // n, where the exponent is
  return __builtin_bit_cast(Vec, __builtin_bit_cast(IntVec, p) + bits);
}

struct alignas(64) Line {
  float at[16];
};

// Sums are taken in blocks first: each number then goes through few roundings, even in a long row.
constexpr int kBlock = 128 * VEC;

enum Stages { kLargest = 1, kExponentials = 2, kResults = 4 };

// One thread's work.
class Softmax {
 public:
  explicit Softmax(const Args& args) : args_(args), lines_(COLS / 16 + 1) {}

  void rows(int first, int end) {
    if (first == end) return;
    if (OVERLAP == 0) {
      for (int row = first; row < end; ++row) {
        sweep<kLargest>(row);
        sweep<kExponentials>(row);
        sweep<kResults>(row);
      }
    } else {
      sweep<kLargest>(first - 1);
      sweep<kLargest | kExponentials>(first);
      for (int row = first + 1; row < end; ++row) sweep<kLargest | kExponentials | kResults>(row);
      sweep<kResults>(end);
    }
  }

 private:
  // Exponentials are computed for `row`; the other stages are OVERLAP rows before and behind.
  template <int stages>
  void sweep(int row) {
    const float* next = args_.x + 1ll * COLS * std::min(row + OVERLAP, ROWS - 1);
    const float* x = args_.x + 1ll * COLS * row;
    float* y = args_.y + 1ll * COLS * (row - OVERLAP);
    float* e = lines_[0].at;
    const float shift = largest_ * kLog2E, scale = scale_;
    Vec largest = Vec{} - INFINITY, sum{}, block_sum{};
    const auto step = [&](int i, int count) {
      // All loads come first: a load soon after a store whose address agrees in the last 12 bits,
      // as those of neighbouring rows often do, has to wait for it.
      const Vec old = stages & kResults ? load(e + i, count, 0) : Vec{};
      if (stages & kLargest) largest = larger(largest, load(next + i, count, -INFINITY));
      if (stages & kExponentials) {
        if (PREFETCH) __builtin_prefetch(x + i + (OVERLAP + 1) * COLS, 0, 2);
        const Vec v = power_of_two(load(x + i, count, -INFINITY) * kLog2E - shift);
        block_sum += v;
        store(e + i, count, v);
      }
      if (stages & kResults) store_result(y + i, count, old * scale);
    };
    for (int i = 0; i < COLS;) {
      const int end = std::min(i + kBlock, COLS);
      for (; i + VEC <= end; i += VEC) step(i, VEC);
      if (i < end) step(i, end - i);
      i = end;
      sum += block_sum;
      block_sum = Vec{};
    }
    if (stages & kLargest) {
      largest_ = across(largest, [](float a, float b) { return a > b ? a : b; });
    }
    if (stages & kExponentials) scale_ = 1 / across(sum, [](float a, float b) { return a + b; });
  }

  const Args& args_;
  std::vector<Line> lines_;  // exponentials of one row; they stay in the cache
  float largest_ = 0;        // of the row whose exponentials come next
  float scale_ = 0;          // 1 / the sum of lines_
};

extern "C" void launch(const Args& args) {
#pragma omp parallel num_threads(THREADS)
  {
    const long long thread = omp_get_thread_num(), threads = omp_get_num_threads();
    Softmax(args).rows(ROWS * thread / threads, ROWS * (thread + 1) / threads);
    if (STREAM) _mm_sfence();
  }
}
