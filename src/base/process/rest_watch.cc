// SPDX-License-Identifier: Apache-2.0
#include "base/process/rest_watch.h"

#include <signal.h>

#include <chrono>
#include <utility>

namespace kernelpro {

namespace {
constexpr std::chrono::milliseconds kStep(100);
}

RestWatch::RestWatch(std::function<int()> look) : look_(std::move(look)) {
  // The program's other threads handle signals.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void RestWatch::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!over_ && why_ == 0) {
    if (changed_.wait_for(lock, kStep, [&] { return over_; })) return;
    why_ = look_();
  }
}

int RestWatch::end() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  return why_;
}

}  // namespace kernelpro
