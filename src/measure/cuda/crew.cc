// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/crew.h"

#include <algorithm>
#include <utility>

#include "core/task/key.h"
#include "measure/cuda/host_side.h"
#include "measure/cuda/python.h"

namespace kernelpro {

namespace {

// This many in a row must work with one queue before the next are started with one.
constexpr int kSure = 2;

}  // namespace

void CudaCrew::dismiss_native() {
  for (CudaLink& link : native_) retire(std::move(link));
  native_.clear();
}

void CudaCrew::dismiss() {
  dismiss_native();
  for (CudaLink& link : captures_) retire(std::move(link));
  for (CudaLink& link : modules_) retire(std::move(link));
  captures_.clear();
  modules_.clear();
}

// Ending a process that has a context takes a while; nothing needs to wait for it.
void CudaCrew::retire(CudaLink link) {
  leaving_.push_back(std::async(std::launch::async, [leaving = std::move(link)]() mutable {
    const CudaLink gone = std::move(leaving);
  }));
}

Result<CudaLink> CudaCrew::start(Queues queues) const {
  // Not by index, which changes where some GPUs are hidden.
  Result<CudaLink> link = hidden_.empty()
                              ? CudaLink::start(WorkerRole::kCudaWorker, settings_.gpu, queues)
                              : CudaLink::start(WorkerRole::kCudaWorker, uuid_, queues, hidden_);
  if (link && briefed_) post_cases(*link, task_, cases_, fresh_secret());
  return link;
}

void CudaCrew::fill() {
  // Starts several at once, then none until they are used up: nothing may start during timing.
  const bool used_up = native_.size() < native_to_come_;
  const std::size_t wanted =
      std::max(native_to_come_, static_cast<std::size_t>(std::max(1, settings_.standby)));
  const Queues queues = !native_.empty()         ? native_.front().queues()  // all alike
                        : few_in_a_row_ >= kSure ? Queues::kOne
                                                 : Queues::kDefault;
  while (used_up && native_.size() < wanted) {
    Result<CudaLink> link = start(queues);
    if (!link) {
      trouble_ = std::move(link.error());
      return;
    }
    native_.push_back(std::move(*link));
  }
}

Result<std::string> CudaCrew::folder() const {
  if (task_.module) return task_.module->path.empty() ? "" : dirname(task_.module->path);
  return fail(ErrorKind::kBadInput, "a PyTorch candidate needs a task that is a PyTorch file",
              "give the module's .py as the task");
}

void CudaCrew::fill_python() {
  const Result<std::string> readable = folder();
  if (!readable || modules_to_come_ == 0) return;
  const int captures = captures_.empty() ? std::min(modules_to_come_, kCapturesAtOnce) : 0;
  for (int i = 0; i < captures; ++i) {
    Result<CudaLink> link = start_module_capture(*readable, settings_.gpu);
    if (!link) break;
    captures_.push_back(std::move(*link));
  }
  fill_modules(host_forms_);
}

void CudaCrew::fill_modules(std::size_t wanted) {
  const Result<std::string> readable = folder();
  while (readable && modules_.size() < wanted) {
    Result<CudaLink> link = start_module_worker(*readable, settings_.gpu);
    if (!link) return;
    modules_.push_back(std::move(*link));
  }
}

void CudaCrew::brief(const std::string& uuid, std::vector<std::string> hidden) {
  for (CudaLink& link : native_) post_cases(link, task_, cases_, fresh_secret());
  briefed_ = true;
  uuid_ = uuid;
  hidden_ = std::move(hidden);
}

void CudaCrew::hide_nothing() {
  if (hidden_.empty()) return;
  hidden_.clear();
  dismiss_native();
}

void CudaCrew::settle_python() {
  // One that failed says so when it is used.
  for (CudaLink& link : captures_) static_cast<void>(link.settle(kStartTimeout));
  for (CudaLink& link : modules_) static_cast<void>(link.settle(kStartTimeout));
}

void CudaCrew::settle() {
  settle_python();
  std::deque<CudaLink> ready;
  bool left = false;
  for (CudaLink& link : native_) {
    Result<Reply> answer = trusted(link.settle(kStartTimeout), "the worker");
    if (answer) {
      ready.push_back(std::move(link));
    } else {
      trouble_ = std::move(answer.error());
      retire(std::move(link));
      left = true;
    }
  }
  native_ = std::move(ready);
  if (left) wait_for_leaving();  // their memory must be free
}

std::optional<CudaWorker> CudaCrew::another() {
  if (native_.empty()) return std::nullopt;
  CudaWorker worker{std::move(native_.front())};
  native_.pop_front();
  return worker;
}

Result<std::vector<CudaWorker>> CudaCrew::take_native(int count, Queues queues) {
  few_in_a_row_ = queues == Queues::kOne ? few_in_a_row_ + 1 : 0;
  // A worker with more queues than needed works; one with fewer does not.
  if (!native_.empty() && queues == Queues::kDefault && native_.front().queues() == Queues::kOne) {
    dismiss_native();
    wait_for_leaving();
  }
  native_to_come_ = std::max(native_to_come_, static_cast<std::size_t>(count));
  for (int attempt = 0; attempt < 2; ++attempt) {
    fill();
    settle();
    if (native_.size() >= static_cast<std::size_t>(count)) {
      trouble_.reset();
      std::vector<CudaWorker> taken;
      while (std::ssize(taken) < count) taken.push_back(std::move(*another()));
      return taken;
    }
    hidden_.clear();  // once more, and from now on with all GPUs visible
  }
  if (trouble_) return tl::unexpected<Error>(*trouble_);
  return fail(ErrorKind::kEnvironment, "no cuda worker process can be started",
              "run again; `kernelpro doctor` shows what is missing");
}

Result<CudaWorker> CudaCrew::take_module(int stage, int others) {
  host_forms_ = std::max(host_forms_, static_cast<std::size_t>(1 + others));
  fill_modules(static_cast<std::size_t>(1 + others));
  for (;;) {
    const bool stood_by = !modules_.empty();
    KP_ASSIGN(const std::string readable, folder());
    Result<CudaLink> link = stood_by ? Result<CudaLink>(std::move(modules_.front()))
                                     : start_module_worker(readable, settings_.gpu);
    if (stood_by) modules_.pop_front();
    if (!link) return tl::unexpected<Error>(link.error());
    CudaWorker worker{std::move(*link), true};
    KP_TRY(post_stage(worker, task_, cases_, stage));
    const Result<Reply> ready = trusted(worker.link.settle(kStartTimeout), "the worker");
    if (ready) return worker;
    if (!stood_by) return tl::unexpected<Error>(ready.error());
    // Perhaps it was ended while it waited.
  }
}

Result<CudaLink> CudaCrew::take_capture() {
  expect_modules();
  fill_python();
  --modules_to_come_;
  if (captures_.empty()) {
    KP_ASSIGN(const std::string readable, folder());
    return start_module_capture(readable, settings_.gpu);
  }
  CudaLink link = std::move(captures_.front());
  captures_.pop_front();
  return link;
}

}  // namespace kernelpro
