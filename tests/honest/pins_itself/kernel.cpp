// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Two threads of std::jthread that wait for work by conditions; each pins itself to a processor.
#include <sched.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "task.h"

namespace {
struct Pool {
  std::mutex mutex;
  std::condition_variable_any begun;
  std::condition_variable done;
  const Args* args = nullptr;
  int round = 0, left = 0;
  std::jthread threads[2];
  Pool() {
    for (int part = 0; part < 2; ++part) threads[part] = std::jthread([this, part](std::stop_token stop) { run(stop, part); });
  }
  void run(std::stop_token stop, int part) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) == 0) {
      int skip = part % CPU_COUNT(&all), cpu = 0;
      for (; skip > 0 || !CPU_ISSET(cpu, &all); ++cpu) skip -= CPU_ISSET(cpu, &all) ? 1 : 0;
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
    }
    for (int seen = 0;;) {
      std::unique_lock lock(mutex);
      if (!begun.wait(lock, stop, [&] { return round != seen; })) return;
      seen = round;
      const Args a = *args;
      lock.unlock();
      for (int i = N / 2 * part; i < (part == 0 ? N / 2 : N); ++i) a.y[i] = 2 * a.x[i] + a.z[i];
      lock.lock();
      if (--left == 0) done.notify_one();
    }
  }
};
}  // namespace

extern "C" void launch(const Args& args) {
  static Pool pool;
  std::unique_lock lock(pool.mutex);
  pool.args = &args;
  pool.left = 2;
  ++pool.round;
  pool.begun.notify_all();
  pool.done.wait(lock, [] { return pool.left == 0; });
}
