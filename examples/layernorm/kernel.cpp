// SPDX-License-Identifier: Apache-2.0
// Layer norm for a CPU. The structure is fixed here: rows are shared out among threads, and each
// row is swept three times while it sits in the cache (mean, variance, result). The knobs choose
// the numbers; the first value of each is the default, and a poor one.
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "task.h"

// Floats that one instruction handles; 1 is scalar code.
// @knob VEC 1 4 8 16 : vectorize
// Threads that share the rows.
// @knob THREADS 1 2 4 8 16 32 64 : threads
// Vectors in flight in a sweep.
// @knob UNROLL 1 2 4 : unroll
// 1: the result bypasses the cache, so that its old contents are not read first.
// @knob STREAM 0 1 : streaming
// Rows that are fetched ahead while this one's variance is computed.
// @knob PREFETCH 0 1 2 : pipeline

static_assert(STREAM == 0 || VEC >= 4, "STREAM = 1 stores 4 floats at a time: it needs VEC >= 4");

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

inline float total(const Vec (&parts)[UNROLL]) {
  float lanes[UNROLL * VEC], sum = 0;
  std::memcpy(lanes, parts, sizeof lanes);
  for (const float lane : lanes) sum += lane;
  return sum;
}

void normalise_row(const float* x, const float* weight, const float* bias, float* y, bool stream) {
  Vec sum[UNROLL]{}, squares[UNROLL]{};
  sweep([&](int i, int count, int u) { sum[u] += load(x + i, count); });
  const float mean = total(sum) / COLS;

  sweep([&](int i, int count, int u) {
    const Vec d = load(x + i, count, mean) - mean;
    squares[u] += d * d;
    if (PREFETCH) __builtin_prefetch(x + PREFETCH * COLS + i, 0, 2);
  });
  const float scale = 1 / std::sqrt(total(squares) / COLS + 1e-5f);

  sweep([&](int i, int count, int) {
    const Vec d = (load(x + i, count) - mean) * scale;
    store(y + i, count, d * load(weight + i, count) + load(bias + i, count), stream);
  });
}

extern "C" void launch(const Args& args) {
#pragma omp parallel num_threads(THREADS)
  {
#pragma omp for
    for (int row = 0; row < ROWS; ++row) {
      const long long at = 1ll * row * COLS;
      const bool aligned = reinterpret_cast<std::uintptr_t>(args.y + at) % 16 == 0;
      normalise_row(args.x + at, args.weight, args.bias, args.y + at, STREAM && aligned);
    }
    if (STREAM) _mm_sfence();
  }
}
