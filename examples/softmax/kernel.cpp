// SPDX-License-Identifier: Apache-2.0
// Row softmax for a CPU. The structure is fixed here: rows are shared out among threads, and each
// row is swept three times while it sits in the cache (largest value, exponentials and their sum,
// scaling). The knobs choose the numbers; the first value of each is the default, and a poor one.
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "task.h"

// Floats that one instruction handles; 1 is scalar code.
// @knob VEC 1 4 8 16 : vectorize
// Threads that share the rows.
// @knob THREADS 1 2 4 8 16 32 64 : threads
// Vectors in flight in a sweep.
// @knob UNROLL 1 2 4 : unroll
// 1: the result bypasses the cache, so that its old contents are not read first.
// @knob STREAM 0 1 : streaming
// Rows that are fetched ahead while this one's exponentials are computed.
// @knob PREFETCH 0 1 2 : pipeline

static_assert(STREAM == 0 || VEC >= 4, "STREAM = 1 stores 4 floats at a time: it needs VEC >= 4");

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

inline void store(float* p, int count, Vec v, bool stream) {
  if (count < VEC) {
    std::memcpy(p, &v, 4 * count);
  } else if (stream) {
    __m128 parts[(VEC + 3) / 4];
    std::memcpy(parts, &v, sizeof v);
    for (int i = 0; i < VEC / 4; ++i) _mm_stream_ps(p + 4 * i, parts[i]);
  } else {
    *reinterpret_cast<Vec*>(p) = v;
  }
}

template <class Combine>
float across(const Vec (&parts)[UNROLL], Combine combine) {
  float lanes[UNROLL * VEC];
  std::memcpy(lanes, parts, sizeof lanes);
  for (int i = 1; i < UNROLL * VEC; ++i) lanes[0] = combine(lanes[0], lanes[i]);
  return lanes[0];
}

inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }

// 2^t for t <= 0, to about 2e-7: 2^n times a polynomial for the fraction t - n in [-1/2, 1/2].
// Results below 2^-126 are as good as zero.
inline Vec power_of_two(Vec t) {
  t = larger(Vec{} - 126.0f, t);
  const Vec shifted = t + 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
  const Vec f = t - (shifted - 12582912.0f);
  Vec p = 1.3400503e-3f * f + 9.6701057e-3f;
  p = p * f + 5.5502813e-2f;
  p = p * f + 2.4022107e-1f;
  p = p * f + 6.9314718e-1f;
  p = p * f + 1.0f;
  const IntVec bits = __builtin_bit_cast(IntVec, shifted) << 23;  // n, where the exponent is
  return __builtin_bit_cast(Vec, __builtin_bit_cast(IntVec, p) + bits);
}

// Calls body(first element, elements, u) for each vector of a row; u counts up to UNROLL.
template <class Body>
inline void sweep(Body body) {
  constexpr int kStep = UNROLL * VEC;
  int i = 0;
  for (; i + kStep <= COLS; i += kStep) {
#pragma GCC unroll 8
    for (int u = 0; u < UNROLL; ++u) body(i + u * VEC, VEC, u);
  }
  for (; i < COLS; i += VEC) body(i, COLS - i < VEC ? COLS - i : VEC, 0);
}

void softmax_row(const float* x, float* y, float* e, bool stream) {
  Vec largest[UNROLL], sum[UNROLL];
  for (int u = 0; u < UNROLL; ++u) {
    largest[u] = Vec{} - INFINITY;
    sum[u] = Vec{};
  }
  sweep([&](int i, int count, int u) {
    largest[u] = larger(largest[u], load(x + i, count, -INFINITY));
  });
  const float row_largest = across(largest, [](float a, float b) { return a > b ? a : b; });

  sweep([&](int i, int count, int u) {
    const Vec v = power_of_two(load(x + i, count, -INFINITY) * kLog2E - row_largest * kLog2E);
    sum[u] += v;
    if (PREFETCH) __builtin_prefetch(x + PREFETCH * COLS + i, 0, 2);
    store(e + i, count, v, false);
  });

  const float scale = 1 / across(sum, [](float a, float b) { return a + b; });
  sweep([&](int i, int count, int) { store(y + i, count, load(e + i, count, 0) * scale, stream); });
}

extern "C" void launch(const Args& args) {
#pragma omp parallel num_threads(THREADS)
  {
    std::vector<float> exponentials(COLS);  // of one row; stays in the cache
#pragma omp for
    for (int row = 0; row < ROWS; ++row) {
      float* y = args.y + 1ll * row * COLS;
      const bool aligned = reinterpret_cast<std::uintptr_t>(y) % 16 == 0;
      softmax_row(args.x + 1ll * row * COLS, y, exponentials.data(), STREAM && aligned);
    }
    if (STREAM) _mm_sfence();
  }
}
