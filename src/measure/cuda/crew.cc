// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/crew.h"

#include <algorithm>
#include <utility>

#include "measure/cuda/python.h"

namespace kernelpro {

namespace {

constexpr double kStartTimeout = 120;  // a context on a cold machine
constexpr int kCapturesAtOnce = 4;     // PyTorch candidates' processes
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
  captures_.clear();
}

// Ending a process that has a context takes a while; nothing needs to wait for it.
void CudaCrew::retire(CudaLink link) {
  leaving_.push_back(std::async(std::launch::async, [leaving = std::move(link)]() mutable {
    const CudaLink gone = std::move(leaving);
  }));
}

Result<CudaLink> CudaCrew::start() const {
  const Queues queues = few_in_a_row_ >= kSure ? Queues::kOne : Queues::kDefault;
  // Not by index, which changes where some GPUs are hidden.
  Result<CudaLink> link = hidden_.empty() ? CudaLink::start("cuda-worker", settings_.gpu, queues)
                                          : CudaLink::start("cuda-worker", uuid_, queues, hidden_);
  if (link && briefed_) post_cases(*link, task_, cases_);
  return link;
}

void CudaCrew::fill() {
  // Starts several at once, then none until they are used up: nothing may start during timing.
  const bool used_up = native_.empty();
  const auto wanted = static_cast<std::size_t>(std::max(1, settings_.standby));
  while (used_up && native_.size() < wanted) {
    Result<CudaLink> link = start();
    if (!link) {
      trouble_ = std::move(link.error());
      return;
    }
    native_.push_back(std::move(*link));
  }
}

void CudaCrew::fill_captures() {
  if (!captures_.empty()) return;
  for (int i = std::min(captures_to_come_, kCapturesAtOnce); i > 0; --i) {
    Result<CudaLink> link = start_module_capture(task_, settings_.gpu);
    if (!link) return;
    link->post({{"do", "hello"}});
    captures_.push_back(std::move(*link));
  }
}

void CudaCrew::brief(const std::string& uuid, std::vector<std::string> hidden) {
  for (CudaLink& link : native_) post_cases(link, task_, cases_);
  briefed_ = true;
  uuid_ = uuid;
  hidden_ = std::move(hidden);
}

void CudaCrew::hide_nothing() {
  if (hidden_.empty()) return;
  hidden_.clear();
  dismiss_native();
}

void CudaCrew::settle() {
  // One that failed says so when it is used.
  for (CudaLink& link : captures_) static_cast<void>(link.settle(kStartTimeout));
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
  CudaWorker worker{std::move(native_.front()), false};
  native_.pop_front();
  return worker;
}

Result<CudaWorker> CudaCrew::take_native(Queues queues) {
  few_in_a_row_ = queues == Queues::kOne ? few_in_a_row_ + 1 : 0;
  // A worker with more queues than needed works; one with fewer does not.
  if (!native_.empty() && queues == Queues::kDefault && native_.front().queues() == Queues::kOne) {
    dismiss_native();
    wait_for_leaving();
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    fill();
    settle();
    if (auto worker = another()) {
      trouble_.reset();
      return std::move(*worker);
    }
    hidden_.clear();  // once more, and from now on with all GPUs visible
  }
  if (trouble_) return tl::unexpected<Error>(*trouble_);
  return fail(ErrorKind::kEnvironment, "no cuda worker process can be started",
              "run again; `kernelpro doctor` shows what is missing");
}

Result<CudaWorker> CudaCrew::take_module() {
  KP_ASSIGN(CudaLink link, start_module_worker(task_, settings_.gpu));
  CudaWorker worker{std::move(link), true};
  post_cases(worker.link, task_, cases_);
  KP_TRY(trusted(worker.link.settle(kStartTimeout), "the worker"));
  return worker;
}

Result<CudaLink> CudaCrew::take_capture() {
  captures_to_come_ = std::max(captures_to_come_, 1);
  fill_captures();
  --captures_to_come_;
  if (captures_.empty()) return start_module_capture(task_, settings_.gpu);
  CudaLink link = std::move(captures_.front());
  captures_.pop_front();
  return link;
}

}  // namespace kernelpro
