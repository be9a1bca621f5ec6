// SPDX-License-Identifier: Apache-2.0
// task: relu
// truth: vectorised=yes threads=all
// Vector extensions; a pool of helpers that spin briefly and then sleep, the caller works too.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "task.h"

namespace {
typedef float V16 __attribute__((vector_size(64), aligned(4)));

void part(const float* x, float* y, long from, long to) {
  long i = from;
  const V16 zero{};
  for (; i + 64 <= to; i += 64) {
    for (int u = 0; u < 4; ++u) {
      const V16 v = *reinterpret_cast<const V16*>(x + i + 16 * u);
      *reinterpret_cast<V16*>(y + i + 16 * u) = v > zero ? v : zero;
    }
  }
  for (; i < to; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

struct Pool {
  const int count = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<unsigned> round{0};
  std::atomic<int> left{0};
  std::mutex mutex;
  std::condition_variable start;
  const float* x = nullptr;
  float* y = nullptr;
  Pool() {
    for (int k = 1; k < count; ++k) {
      std::thread([this, k] {
        for (unsigned seen = 0;;) {
          unsigned now;
          int spins = 0;
          while ((now = round.load(std::memory_order_acquire)) == seen) {
            if (++spins < 2000) continue;
            std::unique_lock<std::mutex> lock(mutex);
            start.wait(lock, [&] { return round.load(std::memory_order_acquire) != seen; });
          }
          seen = now;
          part(x, y, long(N) * k / count, long(N) * (k + 1) / count);
          left.fetch_sub(1, std::memory_order_release);
        }
      }).detach();
    }
  }
  void run(const Args& args) {
    x = args.x;
    y = args.y;
    left.store(count - 1, std::memory_order_relaxed);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      round.fetch_add(1, std::memory_order_release);
    }
    start.notify_all();
    part(x, y, 0, long(N) / count);
    while (left.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  }
};
}  // namespace

extern "C" void launch(const Args& args) {
  static Pool* pool = new Pool;
  pool->run(args);
}
