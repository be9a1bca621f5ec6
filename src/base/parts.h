// SPDX-License-Identifier: Apache-2.0
// Loops over many elements: on all processors, with the widest vectors that this machine has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

// A function with such a loop is compiled once for each generation of x86 vectors; the loader
// chooses. Sanitizers cannot run in the loader.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KERNELPRO_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define KERNELPRO_VECTORS  // functions for one of these generations may be written
#else
#define KERNELPRO_WIDE
#endif
// A part of one: must be inlined to be compiled alike.
#define KERNELPRO_WIDE_PART [[gnu::always_inline]] inline

namespace kernelpro {

constexpr int kMostParts = 64;

// Runs `work(begin, end, part)` over [0, n) on as many threads as there are processors, each with
// at least `least` elements; begins are multiples of `unit`, `part` is below kMostParts.
template <class Work>
void in_parts(std::int64_t n, std::int64_t least, const Work& work, std::int64_t unit = 64) {
  const std::int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  const auto parts = static_cast<int>(
      std::clamp<std::int64_t>(n / least, 1, std::min<std::int64_t>(threads, kMostParts)));
  const auto bound = [&](int part) { return part == parts ? n : n / unit * part / parts * unit; };
  std::vector<std::thread> others;
  for (int part = 1; part < parts; ++part) {
    others.emplace_back([&work, bound, part] { work(bound(part), bound(part + 1), part); });
  }
  work(0, bound(1), 0);
  for (std::thread& thread : others) thread.join();
}

}  // namespace kernelpro
