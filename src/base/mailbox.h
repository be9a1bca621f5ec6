// SPDX-License-Identifier: Apache-2.0
// Work that other threads hand to one thread: its owner's, which made it. What is changed by
// messages alone needs no lock of its own.
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
  // From any thread; returns when the owner has run it. On the owner's own thread it runs here.
  // REQUIRES: the owner runs messages until the caller has ended.
  void call(const std::function<void()>& work);
  // Owner: runs the next message, for which it waits.
  void run_next();

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> messages_;
};

}  // namespace kernelpro
