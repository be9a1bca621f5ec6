// SPDX-License-Identifier: Apache-2.0
// task: attention
// expect: correct
// Memory from a resource of std::pmr over a buffer of each thread; spans, concepts, ranges, and sums by
// virtual functions of objects that dynamic_cast tells apart.
#include <algorithm>
#include <cmath>
#include <concepts>
#include <memory_resource>
#include <numeric>
#include <ranges>
#include <span>
#include <vector>

#include "task.h"

namespace {
struct Sum {
  virtual ~Sum() = default;
  virtual float of(std::span<const float> a, std::span<const float> b) const = 0;
};
struct InFloat final : Sum {
  float of(std::span<const float> a, std::span<const float> b) const override {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0f);
  }
};
struct InDouble final : Sum {
  float of(std::span<const float> a, std::span<const float> b) const override {
    return float(std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(), [](float x, float y) { return double(x) * y; }));
  }
};
template <std::floating_point T>
T exponential(T x) { return std::exp(x); }
}  // namespace

extern "C" void launch(const Args& args) {
  thread_local std::byte buffer[1 << 16];
  std::pmr::monotonic_buffer_resource memory(buffer, sizeof buffer);
  std::pmr::unsynchronized_pool_resource pool(&memory);
  InFloat in_float;
  InDouble in_double;
  const Sum* sums[] = {&in_float, &in_double};
  for (int i = 0; i < ROWS; ++i) {
    const Sum* sum = sums[i % 2];
    std::pmr::vector<float> p(KEYS, &pool);
    for (int j : std::views::iota(0, KEYS)) p[j] = sum->of({args.q + i * D, std::size_t(D)}, {args.k + j * D, std::size_t(D)}) / 8;
    const float largest = std::ranges::max(p);
    for (float& v : p) v = exponential(v - largest);
    const bool precise = dynamic_cast<const InDouble*>(sum) != nullptr;
    const float total = precise ? float(std::accumulate(p.begin(), p.end(), 0.0)) : std::accumulate(p.begin(), p.end(), 0.0f);
    for (int d = 0; d < D; ++d) {
      double y = 0;
      for (int j = 0; j < KEYS; ++j) y += double(p[j]) * args.v[j * D + d];
      args.y[i * D + d] = float(y / total);
    }
  }
}
