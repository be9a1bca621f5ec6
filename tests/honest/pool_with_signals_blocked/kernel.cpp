// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// A pool whose threads block all signals, as servers do, and a first thread that sleeps meanwhile.
#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "task.h"

static std::mutex mutex;
static std::condition_variable changed;
static const Args* wanted = nullptr;

static void serve() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [] { return wanted != nullptr; });
    for (int i = 0; i < N; ++i) wanted->y[i] = 2 * wanted->x[i] + wanted->z[i];
    wanted = nullptr;
    changed.notify_all();
  }
}

extern "C" void launch(const Args& args) {
  static const bool started = [] {
    std::thread(serve).detach();
    return true;
  }();
  (void)started;
  std::unique_lock<std::mutex> lock(mutex);
  wanted = &args;
  changed.notify_all();
  changed.wait(lock, [] { return wanted == nullptr; });
}
