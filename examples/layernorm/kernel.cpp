// SPDX-License-Identifier: Apache-2.0
// Layer norm for a CPU. The structure is fixed here: threads share the rows, and a row goes through
// two stages: its mean and variance, its results. Each stage is a sweep over the row; with
// OVERLAP = 1 two neighbouring rows share one sweep. The knobs choose the numbers; the first value
// of each is the default, and a poor one.
#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "task.h"

// Floats that one instruction handles; 1 is scalar code.
// @knob VEC 1 4 8 16 : vectorize
// Threads that share the rows.
// @knob THREADS 1 2 4 8 16 32 64 : threads
// 1: a sweep takes the mean and variance of one row and stores the results of the row before, so
// that memory and arithmetic are busy at the same time.
// @knob OVERLAP 0 1 : pipeline
// 1: the result bypasses the cache, so that its old contents are not read first.
// @knob STREAM 0 1 : streaming
// 1: another row is fetched ahead while a mean and variance are computed.
// @knob PREFETCH 0 1 : pipeline
// Streaming stores take 4 floats at a time.
// @require STREAM == 0 || VEC >= 4

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

// `count` floats at p, the rest of the vector filled up.
inline Vec load(const float* p, int count, float fill = 0) {
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

inline float total(Vec v) {
  float lanes[VEC], sum = 0;
  std::memcpy(lanes, &v, sizeof lanes);
  for (const float lane : lanes) sum += lane;
  return sum;
}

// Sums are taken in blocks first: each number then goes through few roundings, even in a long row.
constexpr int kBlock = 64 * VEC;

// The mean of a row's first elements, near enough to that of the row for few digits to cancel in
// the variance. (A single element may lie many deviations off.)
inline float origin_of(const float* x) {
  constexpr int kCount = COLS < 16 ? COLS : 16;
  float sum = 0;
  for (int i = 0; i < kCount; ++i) sum += x[i];
  return sum / kCount;
}

enum Stages { kStatistics = 1, kResults = 2 };

// One thread's work.
class LayerNorm {
 public:
  explicit LayerNorm(const Args& args) : args_(args) {}

  void rows(int first, int end) {
    if (first == end) return;
    if (OVERLAP == 0) {
      for (int row = first; row < end; ++row) {
        sweep<kStatistics>(row);
        sweep<kResults>(row);
      }
    } else {
      sweep<kStatistics>(first);
      for (int row = first + 1; row < end; ++row) sweep<kStatistics | kResults>(row);
      sweep<kResults>(end);
    }
  }

 private:
  // Statistics are taken of `row`; results are those of the row OVERLAP before.
  template <int stages>
  void sweep(int row) {
    const float* x = args_.x + 1ll * COLS * row;
    const float* old = x - OVERLAP * COLS;
    const float *weight = args_.weight, *bias = args_.bias;
    float* y = args_.y + 1ll * COLS * (row - OVERLAP);
    const float mean = mean_, scale = scale_;
    const float origin = stages & kStatistics ? origin_of(x) : 0;
    Vec sum{}, squares{}, block_sum{}, block_squares{};
    const auto step = [&](int i, int count) {
      if (stages & kStatistics) {
        if (PREFETCH) __builtin_prefetch(x + i + COLS, 0, 2);
        const Vec d = load(x + i, count, origin) - origin;
        block_sum += d;
        block_squares += d * d;
      }
      if (stages & kResults) {
        const Vec d = (load(old + i, count) - mean) * scale;
        store_result(y + i, count, d * load(weight + i, count) + load(bias + i, count));
      }
    };
    for (int i = 0; i < COLS;) {
      const int end = std::min(i + kBlock, COLS);
      for (; i + VEC <= end; i += VEC) step(i, VEC);
      if (i < end) step(i, end - i);
      i = end;
      sum += block_sum;
      squares += block_squares;
      block_sum = block_squares = Vec{};
    }
    if (stages & kStatistics) {
      const float shift = total(sum) / COLS;
      mean_ = origin + shift;
      scale_ = 1 / std::sqrt(std::max(total(squares) / COLS - shift * shift, 0.0f) + 1e-5f);
    }
  }

  const Args& args_;
  float mean_ = 0, scale_ = 0;  // of the row whose results come next
};

extern "C" void launch(const Args& args) {
#pragma omp parallel num_threads(THREADS)
  {
    const long long thread = omp_get_thread_num(), threads = omp_get_num_threads();
    LayerNorm(args).rows(ROWS * thread / threads, ROWS * (thread + 1) / threads);
    if (STREAM) _mm_sfence();
  }
}
