// SPDX-License-Identifier: Apache-2.0
#include "write/waiting.h"

#include <chrono>
#include <utility>

namespace kernelpro {

Waiting::Waiting(std::function<void(double)> tell, double first_s, double every_s)
    : tell_(std::move(tell)), thread_([this, first_s, every_s] { run(first_s, every_s); }) {}

Waiting::~Waiting() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Waiting::run(double first_s, double every_s) {
  double waited_s = 0;
  for (double next_s = first_s;; next_s = every_s) {
    std::unique_lock lock(mutex_);
    const auto pause = std::chrono::duration<double>(next_s);
    if (ended_.wait_for(lock, pause, [this] { return end_; })) return;
    lock.unlock();
    waited_s += next_s;
    tell_(waited_s);
  }
}

}  // namespace kernelpro
