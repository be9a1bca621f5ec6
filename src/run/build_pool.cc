// SPDX-License-Identifier: Apache-2.0
#include "run/build_pool.h"

#include <algorithm>
#include <optional>

namespace kernelpro {

BuiltKernel build_kernel(const Task& task, TargetKind kind, Compiler& compiler,
                         const Candidate& candidate) {
  double ms = 0;
  auto built = build(task, kind, compiler, candidate, &ms);
  return {std::move(built), ms};
}

BuildPool::BuildPool(const Task& task, TargetKind kind, Compiler& compiler,
                     const std::vector<Candidate>& candidates, int jobs)
    : promises_(candidates.size()) {
  for (std::promise<BuiltKernel>& promise : promises_) {
    futures_.push_back(promise.get_future().share());
  }
  const auto work = [this, &task, kind, &compiler, &candidates] {
    for (std::size_t i = next_++; i < candidates.size() && !stop_; i = next_++) {
      std::optional<Subject> subject;  // of a kernel that was built
      try {
        BuiltKernel built = build_kernel(task, kind, compiler, candidates[i]);
        if (built.built && std::holds_alternative<Subject>(*built.built)) {
          subject = std::get<Subject>(*built.built);
        }
        promises_[i].set_value(std::move(built));
      } catch (...) {
        promises_[i].set_exception(std::current_exception());
      }
      // Disassemblers take longer than most evaluations.
      if (!subject) continue;
      if (auto ahead = observe_ahead(task, kind, *subject); ahead.valid()) ahead.wait();
    }
  };
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t most = jobs > 0 ? static_cast<std::size_t>(jobs) : cores;
  for (std::size_t i = 0; i < std::min(most, candidates.size()); ++i) threads_.emplace_back(work);
}

BuildPool::~BuildPool() {
  stop_ = true;
  join();
}

void BuildPool::join() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace kernelpro
