// SPDX-License-Identifier: Apache-2.0
// Builds candidates in parallel on the CPU cores, ahead of their evaluation.
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

// Called on the building thread; either may be empty.
struct BuildHooks {
  std::function<void()> built;  // after each candidate, compiled or not
  // Further work in advance for a candidate that compiled; counts as building.
  std::function<void(const Subject&)> afterwards;
};

class BuildPool {
 public:
  // `jobs` at a time (0: one per core). `task` and `compiler` must outlive the pool.
  BuildPool(const Task& task, TargetKind kind, Compiler& compiler, int jobs, BuildHooks hooks = {});
  // Waits for builds in progress; drops those not started.
  ~BuildPool();
  BuildPool(const BuildPool&) = delete;
  BuildPool& operator=(const BuildPool&) = delete;

  using Future = std::shared_future<BuiltKernel>;
  // Builds start in call order as threads become free. Safe from any thread.
  Future put(Candidate candidate);
  // Waits until all work is done, hooks included. Safe from any thread.
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
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::size_t busy_ = 0;  // threads
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kernelpro
