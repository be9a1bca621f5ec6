// SPDX-License-Identifier: Apache-2.0
// A queue of work for one thread, the owner: the thread that constructed it. State that only
// messages change needs no lock.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace kernelpro {

class Mailbox {
 public:
  // From any thread; returns at once.
  void post(std::function<void()> work);
  // From any thread; returns after the owner has run it. On the owner's thread, runs it directly.
  // REQUIRES: the owner keeps running messages until the caller has ended.
  void call(const std::function<void()>& work);
  // Owner only: waits for the next message and runs it.
  void run_next();

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> messages_;
};

}  // namespace kernelpro
