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

#include "run/target.h"

namespace kernelpro {

struct BuiltKernel {
  BuildResult built;
  double compile_ms = 0;
};

BuiltKernel build_kernel(const Task& task, TargetKind kind, Compiler& compiler,
                         const Candidate& candidate);

class BuildPool {
 public:
  // `jobs` at a time (0: as many as there are cores). `on_built` is told of each from the thread
  // that built it; may be empty. `task` and `compiler` must outlive the pool.
  BuildPool(const Task& task, TargetKind kind, Compiler& compiler, int jobs,
            std::function<void()> on_built = {});
  // Waits for what is being built; what was not begun is left out.
  ~BuildPool();
  BuildPool(const BuildPool&) = delete;
  BuildPool& operator=(const BuildPool&) = delete;

  using Future = std::shared_future<BuiltKernel>;
  // Begun in the order of calls, as soon as a thread is free. From any thread.
  Future put(Candidate candidate);
  // Waits until nothing is left to build, nor to disassemble. From any thread.
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
  const std::function<void()> on_built_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::size_t busy_ = 0;  // threads
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kernelpro
