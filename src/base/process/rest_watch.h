// SPDX-License-Identifier: Apache-2.0
// Looks at a child ten times a second while nobody waits for it: what runs a user's file may go on
// taking memory and starting processes between two commands. Used by base/process/subprocess.cc
// only.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace kernelpro {

class RestWatch {
 public:
  // `look` runs on the watch's own thread. Once it returns another number than 0, the reason why it
  // has ended the child, it is not called again.
  explicit RestWatch(std::function<int()> look);
  ~RestWatch() { end(); }
  RestWatch(const RestWatch&) = delete;
  RestWatch& operator=(const RestWatch&) = delete;

  // Stops looking; returns `look`'s reason, 0 if it had none. `look` does not run afterwards.
  int end();

 private:
  void watch();

  const std::function<int()> look_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  int why_ = 0;
  std::thread thread_;  // last: it uses the others
};

}  // namespace kernelpro
