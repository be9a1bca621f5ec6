// SPDX-License-Identifier: Apache-2.0
// task: ema
// truth: vectorised=yes threads=all
// std::thread and a plain loop that the compiler vectorises.
#include <algorithm>
#include <thread>
#include <vector>

#include "task.h"

static void mix(const float* __restrict m, const float* __restrict p, float* __restrict y, long n) {
  for (long i = 0; i < n; ++i) y[i] = 0.99999f * m[i] + 0.00001f * p[i];
}

extern "C" void launch(const Args& args) {
  const long count = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (long t = 0; t < count; ++t) {
    const long from = N * t / count, n = N * (t + 1) / count - from;
    if (t + 1 < count)
      threads.emplace_back(mix, args.m + from, args.p + from, args.y + from, n);
    else
      mix(args.m + from, args.p + from, args.y + from, n);
  }
  for (std::thread& thread : threads) thread.join();
}
