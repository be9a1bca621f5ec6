// SPDX-License-Identifier: Apache-2.0
// Builds several candidates side by side on the CPU cores, ahead of whoever evaluates them.
#pragma once

#include <atomic>
#include <future>
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
  // Starts at once, in order, `jobs` at a time (0: as many as there are cores). All arguments must
  // outlive the pool.
  BuildPool(const Task& task, TargetKind kind, Compiler& compiler,
            const std::vector<Candidate>& candidates, int jobs);
  // Waits for what is being built; what was not begun is left out.
  ~BuildPool();
  BuildPool(const BuildPool&) = delete;
  BuildPool& operator=(const BuildPool&) = delete;

  // Waits for candidate i. From any thread; the reference lives as long as the pool.
  const BuiltKernel& get(std::size_t i) const { return futures_[i].get(); }
  // Waits for all. From one thread at a time.
  void join();

 private:
  std::vector<std::promise<BuiltKernel>> promises_;
  std::vector<std::shared_future<BuiltKernel>> futures_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace kernelpro
