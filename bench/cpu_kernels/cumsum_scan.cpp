// SPDX-License-Identifier: Apache-2.0
// task: cumsum
// truth: vectorised=yes threads=all
// Two passes: sums of the pieces in double lanes, then a scan inside registers with a carry.
#include <algorithm>
#include <thread>
#include <vector>

#include "task.h"

namespace {
typedef float V8 __attribute__((vector_size(32), aligned(4)));
typedef double D4 __attribute__((vector_size(32), aligned(8)));
typedef float F4 __attribute__((vector_size(16), aligned(4)));

double total(const float* x, long n) {
  D4 a{}, b{};
  long i = 0;
  for (; i + 8 <= n; i += 8) {
    a += __builtin_convertvector(*reinterpret_cast<const F4*>(x + i), D4);
    b += __builtin_convertvector(*reinterpret_cast<const F4*>(x + i + 4), D4);
  }
  a += b;
  double sum = a[0] + a[1] + a[2] + a[3];
  for (; i < n; ++i) sum += x[i];
  return sum;
}

void scan(const float* x, float* y, long n, double carry) {
  const V8 zero{};
  long i = 0;
  for (; i + 8 <= n; i += 8) {
    V8 v = *reinterpret_cast<const V8*>(x + i);
    v += __builtin_shuffle(zero, v,
                           (int __attribute__((vector_size(32)))){0, 8, 9, 10, 11, 12, 13, 14});
    v += __builtin_shuffle(zero, v,
                           (int __attribute__((vector_size(32)))){0, 1, 8, 9, 10, 11, 12, 13});
    v += __builtin_shuffle(zero, v,
                           (int __attribute__((vector_size(32)))){0, 1, 2, 3, 8, 9, 10, 11});
    *reinterpret_cast<V8*>(y + i) = v + static_cast<float>(carry);
    carry += v[7];
  }
  for (; i < n; ++i) y[i] = static_cast<float>(carry += x[i]);
}
}  // namespace

extern "C" void launch(const Args& args) {
  const int count = std::max(1u, std::thread::hardware_concurrency());
  std::vector<double> before(count + 1, 0.0);
  const auto at = [count](int t) { return long(N) * t / count; };
  const auto everywhere = [count](auto&& work) {
    std::vector<std::thread> others;
    for (int t = 1; t < count; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& other : others) other.join();
  };
  everywhere([&](int t) { before[t + 1] = total(args.x + at(t), at(t + 1) - at(t)); });
  for (int t = 0; t < count; ++t) before[t + 1] += before[t];
  everywhere([&](int t) { scan(args.x + at(t), args.y + at(t), at(t + 1) - at(t), before[t]); });
}
