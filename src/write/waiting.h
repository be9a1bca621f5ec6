// SPDX-License-Identifier: Apache-2.0
// Tells that an answer is still awaited, at intervals: a silent server otherwise shows nothing for
// as long as its deadline.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace kernelpro {

class Waiting {
 public:
  // Calls `tell` with the seconds since now, on a thread of its own, after `first_s` and then every
  // `every_s`, until this is destroyed.
  explicit Waiting(std::function<void(double waited_s)> tell, double first_s = 30,
                   double every_s = 60);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void run(double first_s, double every_s);

  std::function<void(double)> tell_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace kernelpro
