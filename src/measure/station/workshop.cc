// SPDX-License-Identifier: Apache-2.0
#include "measure/station/workshop.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/cancel.h"
#include "base/hash.h"

namespace kernelpro {

namespace {

template <class Future>
bool is_ready(const Future& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

template <class Value>
std::shared_future<Value> ready_with(Value value) {
  std::promise<Value> promise;
  promise.set_value(std::move(value));
  return promise.get_future().share();
}

}  // namespace

Result<Built> built_of(const Candidate& candidate, const BuiltKernel& kernel) {
  if (!kernel.built) return tl::unexpected<Error>(kernel.built.error());
  Built built;
  built.candidate = candidate.content_hash();
  built.compile_ms = kernel.compile_ms;
  built.code = kernel.code;
  if (const auto* error = std::get_if<CompileError>(&*kernel.built)) built.error = *error;
  return built;
}

Workshop::Workshop(const Task& task, TargetKind kind, std::shared_ptr<Compiler> compiler, int jobs,
                   std::function<void(const Subject&)> afterwards, bool each)
    : task_(task),
      kind_(kind),
      compiler_(std::move(compiler)),
      most_(jobs > 0 ? static_cast<std::size_t>(jobs)
                     : std::max(1u, std::thread::hardware_concurrency())),
      afterwards_(std::move(afterwards)),
      each_(each) {}

namespace {

// For whoever waits for a build that will not be: a promise without a value would throw there.
template <class Job>
void give_up(Job* job) {
  const Error error{ErrorKind::kEnvironment, "the build was dropped before it began",
                    "ask for it again"};
  job->kernel.set_value({tl::unexpected<Error>(error), 0, ""});
  job->built.set_value(tl::unexpected<Error>(error));
}

}  // namespace

Workshop::~Workshop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  for (Job& job : waiting_) give_up(&job);
}

// REQUIRES: mutex_ is held. A machine error is forgotten: the next build may succeed.
Workshop::Kept* Workshop::find(const std::string& hash) {
  const auto it = kept_.find(hash);
  if (it == kept_.end()) return nullptr;
  if (is_ready(it->second.kernel) && !it->second.kernel.get().built) {
    kept_.erase(it);
    return nullptr;
  }
  it->second.used = ++calls_;
  return &it->second;
}

// REQUIRES: mutex_ is held. Drops the one not used for longest; all can be built again.
void Workshop::keep(const std::string& hash, Kept kept) {
  if (kept_.size() >= kMostKept) {
    const auto oldest = std::min_element(
        kept_.begin(), kept_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    kept_.erase(oldest);
  }
  kept.used = ++calls_;
  kept_[hash] = std::move(kept);
}

Building Workshop::begin(const Candidate& candidate, std::function<void()> done) {
  Job job;
  job.candidate = candidate;
  job.hash = candidate.content_hash();
  std::unique_lock<std::mutex> lock(mutex_);
  if (const Kept* kept = find(job.hash); kept != nullptr && is_ready(kept->built)) {
    const Building building = kept->built;
    lock.unlock();
    if (done) done();
    return building;
  }
  job.done = std::move(done);
  const Building building = job.built.get_future().share();
  keep(job.hash, {job.kernel.get_future().share(), building, 0});
  waiting_.push_back(std::move(job));
  if (threads_.size() < most_ && busy_ + waiting_.size() > threads_.size()) {
    threads_.emplace_back([this] { work(); });
  }
  changed_.notify_all();
  return building;
}

BuiltKernel Workshop::kernel(const Candidate& candidate) {
  const std::string hash = candidate.content_hash();
  std::optional<std::shared_future<BuiltKernel>> begun;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const Kept* kept = find(hash)) begun = kept->kernel;
  }
  if (begun) return begun->get();
  BuiltKernel built = build_kernel(task_, kind_, *compiler_, candidate);
  if (cancel_requested() || !built.built) return built;
  Kept kept{ready_with(built), ready_with(built_of(candidate, built)), 0};
  const std::lock_guard<std::mutex> lock(mutex_);
  keep(hash, std::move(kept));
  return built;
}

void Workshop::wait_until_idle() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && busy_ == 0; });
}

void Workshop::drop_waiting() {
  std::deque<Job> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Job& job : waiting_) kept_.erase(job.hash);
    dropped = std::move(waiting_);
    waiting_.clear();
  }
  for (Job& job : dropped) give_up(&job);
  wait_until_idle();
}

void Workshop::work() {
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

void Workshop::carry_out(Job* job) {
  std::optional<Subject> subject;  // set if the kernel was built
  try {
    BuiltKernel kernel = build_kernel(task_, kind_, *compiler_, job->candidate);
    if (kernel.built && std::holds_alternative<Subject>(*kernel.built)) {
      subject = std::get<Subject>(*kernel.built);
    }
    Result<Built> built = built_of(job->candidate, kernel);
    job->kernel.set_value(std::move(kernel));
    job->built.set_value(std::move(built));
  } catch (...) {
    job->kernel.set_exception(std::current_exception());
    job->built.set_exception(std::current_exception());
  }
  if (job->done) job->done();
  if (subject && afterwards_ && (each_ || is_new_source(job->candidate))) afterwards_(*subject);
}

bool Workshop::is_new_source(const Candidate& candidate) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return sources_.insert(hash_hex(candidate.source)).second;
}

}  // namespace kernelpro
