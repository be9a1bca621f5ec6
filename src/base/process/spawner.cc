// SPDX-License-Identifier: Apache-2.0
#include "base/process/spawner.h"

#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace kernelpro {

namespace {

struct Spawner {
  std::mutex turn;  // one caller at a time
  std::mutex mutex;
  std::condition_variable changed;
  const std::function<void()>* work = nullptr;

  void serve() {
    // The program's other threads handle signals.
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return work != nullptr; });
      (*work)();
      work = nullptr;
      changed.notify_all();
    }
  }
  void run(const std::function<void()>& wanted) {
    const std::lock_guard<std::mutex> one(turn);
    std::unique_lock<std::mutex> lock(mutex);
    work = &wanted;
    changed.notify_all();
    changed.wait(lock, [&] { return work == nullptr; });
  }
};

// Never destroyed: the thread uses it until the program ends.
Spawner* current() {
  static std::mutex mutex;
  static Spawner* spawner = nullptr;
  static pid_t owner = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  if (spawner == nullptr || owner != ::getpid()) {
    spawner = new Spawner;  // after a fork the old one has no thread
    owner = ::getpid();
    std::thread([own = spawner] { own->serve(); }).detach();
  }
  return spawner;
}

}  // namespace

void on_spawner_thread(const std::function<void()>& work) { current()->run(work); }

}  // namespace kernelpro
