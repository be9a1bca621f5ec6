// SPDX-License-Identifier: Apache-2.0
#include "build/build_pool.h"

#include <algorithm>
#include <optional>

namespace kernelpro {

BuildPool::BuildPool(const Task& task, TargetKind kind, Compiler& compiler, int jobs,
                     BuildHooks hooks)
    : task_(task),
      kind_(kind),
      compiler_(compiler),
      most_(jobs > 0 ? static_cast<std::size_t>(jobs)
                     : std::max(1u, std::thread::hardware_concurrency())),
      hooks_(std::move(hooks)) {}

BuildPool::~BuildPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

BuildPool::Future BuildPool::put(Candidate candidate) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back({std::move(candidate), {}});
  Future future = waiting_.back().promise.get_future().share();
  if (threads_.size() < most_ && busy_ + waiting_.size() > threads_.size()) {
    threads_.emplace_back([this] { work(); });
  }
  changed_.notify_all();
  return future;
}

void BuildPool::wait_until_idle() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && busy_ == 0; });
}

void BuildPool::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    ++busy_;
    lock.unlock();
    carry_out(&job);
    lock.lock();
    --busy_;
    changed_.notify_all();
  }
}

void BuildPool::carry_out(Job* job) {
  std::optional<Subject> subject;  // set if the kernel was built
  try {
    BuiltKernel built = build_kernel(task_, kind_, compiler_, job->candidate);
    if (built.built && std::holds_alternative<Subject>(*built.built)) {
      subject = std::get<Subject>(*built.built);
    }
    job->promise.set_value(std::move(built));
  } catch (...) {
    job->promise.set_exception(std::current_exception());
  }
  if (hooks_.built) hooks_.built();
  if (subject && hooks_.afterwards) hooks_.afterwards(*subject);
}

}  // namespace kernelpro
