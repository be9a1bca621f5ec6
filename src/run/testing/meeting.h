// SPDX-License-Identifier: Apache-2.0
// A barrier for the evaluations of several GPUs: tests of concurrent behavior need neither sleeps
// nor a quiet machine.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace kernelpro::testing {

// Thread-safe. Callers of `arrive` block until `size` of them are there, then all continue:
// `meetings` times, after which `arrive` returns at once. The very first caller never waits: it is
// the start, which is measured alone.
class Meeting {
 public:
  Meeting(int size, int meetings) : size_(size), meetings_(meetings) {}

  void arrive() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (++calls_ == 1 || held_ == meetings_ || failed_) return;
    const int meeting = held_;
    if (++present_ == size_) {
      present_ = 0;
      ++held_;
      changed_.notify_all();
      return;
    }
    // Far longer than the slowest machine needs: a timeout is a failure.
    if (!changed_.wait_for(lock, std::chrono::seconds(120),
                           [&] { return failed_ || held_ > meeting; })) {
      failed_ = true;
      changed_.notify_all();
    }
  }
  // Completed meetings; 0 when one failed. After a failure no caller waits any more.
  int held() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failed_ ? 0 : held_;
  }

 private:
  const int size_;
  const int meetings_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;
  int present_ = 0;
  int held_ = 0;
  bool failed_ = false;
};

}  // namespace kernelpro::testing
