// SPDX-License-Identifier: Apache-2.0
// Builds candidates side by side on the CPU cores, ahead of whoever evaluates them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "build/build.h"

namespace kernelpro {

// Called from the thread that built; either may be empty.
struct BuildHooks {
  std::function<void()> built;  // each candidate, whether it compiled or not
  // What else is worth doing ahead with one that compiled; counts as building.
  std::function<void(const Subject&)> afterwards;
};

class BuildPool {
 public:
  // `jobs` at a time (0: as many as there are cores). `task` and `compiler` must outlive the pool.
  BuildPool(const Task& task, TargetKind kind, Compiler& compiler, int jobs, BuildHooks hooks = {});
  // Waits for what is being built; what was not begun is left out.
  ~BuildPool();
  BuildPool(const BuildPool&) = delete;
  BuildPool& operator=(const BuildPool&) = delete;

  using Future = std::shared_future<BuiltKernel>;
  // Begun in the order of calls, as soon as a thread is free. From any thread.
  Future put(Candidate candidate);
  // Waits until nothing is left to do, the hooks included. From any thread.
  void wait_until_idle();

 private:
  struct Job {
    Candidate candidate;
    std::promise<BuiltKernel> promise;
  };
  void work();
  void carry_out(Job* job);

  const Task& task_;
  const TargetKind kind_;
  Compiler& compiler_;
  const std::size_t most_;  // threads
  const BuildHooks hooks_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::size_t busy_ = 0;  // threads
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kernelpro
