// SPDX-License-Identifier: Apache-2.0
#include "base/mailbox.h"

#include <future>
#include <utility>

namespace kernelpro {

void Mailbox::post(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    messages_.push_back(std::move(work));
  }
  posted_.notify_one();
}

void Mailbox::call(const std::function<void()>& work) {
  if (std::this_thread::get_id() == owner_) return work();
  std::promise<void> done;
  post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

void Mailbox::run_next() {
  std::unique_lock<std::mutex> lock(mutex_);
  posted_.wait(lock, [this] { return !messages_.empty(); });
  const std::function<void()> work = std::move(messages_.front());
  messages_.pop_front();
  lock.unlock();
  work();
}

}  // namespace kernelpro
