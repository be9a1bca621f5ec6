// SPDX-License-Identifier: Apache-2.0
// The processes that run candidates. They start ahead: creating a context takes longer than an
// evaluation and importing PyTorch takes seconds. Each is used once, then ends, but for those that
// screen variants. None may start or exit while calls are timed: `settle` and `wait_for_leaving`
// ensure that. One thread.
#pragma once

#include <algorithm>
#include <deque>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "measure/cuda/case.h"
#include "measure/cuda/worker.h"
#include "measure/judge/evaluator.h"

namespace kernelpro {

inline constexpr int kCapturesAtOnce = 4;  // PyTorch candidates' processes

class CudaCrew {
 public:
  // All must outlive it. `cases` may be filled later.
  CudaCrew(const Task& task, const EvaluateSettings& settings, const std::vector<CudaCase>& cases)
      : task_(task), settings_(settings), cases_(cases), modules_to_come_(settings.modules_ahead) {}
  ~CudaCrew() { dismiss(); }
  CudaCrew(const CudaCrew&) = delete;
  CudaCrew& operator=(const CudaCrew&) = delete;

  // Takes over processes that were started before the task was known (measure/cuda/ahead.h).
  void adopt(std::deque<CudaLink> workers) { native_ = std::move(workers); }
  void adopt_python(std::deque<CudaLink> captures, std::deque<CudaLink> modules) {
    captures_ = std::move(captures);
    modules_ = std::move(modules);
  }
  // When fewer native workers are left than the next evaluation needs, starts as many as the
  // settings ask for, with the queues that recent candidates needed. Returns at once; `take_native`
  // reports failures.
  void fill();
  // The same for PyTorch candidates, as long as some are to come: processes that capture them, and
  // as many for those in host form as the last of these needed, at least one.
  void fill_python();
  // So many more PyTorch candidates may come.
  void expect_modules(int count = 1) { modules_to_come_ = std::max(modules_to_come_, count); }
  // Call once the cases are known: describes them to waiting and later workers. Later ones run on
  // the GPU `uuid` without `hidden`, other GPUs' device files (machine/gpu_watch.h).
  void brief(const std::string& uuid, std::vector<std::string> hidden);
  // From now on workers see all GPUs: NVML, which they open to measure energy, may need that.
  void hide_nothing();
  // Ends all processes in parallel.
  void dismiss();

  // Workers that are ready, all alike. An Error is the machine's fault.
  Result<std::vector<CudaWorker>> take_native(int count, Queues queues);
  Result<CudaWorker> take_native(Queues queues) {
    KP_ASSIGN(auto one, take_native(1, queues));
    return std::move(one.front());
  }
  // How many the next evaluation needs: `fill` sees to it that as many stand by.
  void expect_native(int count) { native_to_come_ = static_cast<std::size_t>(count); }
  // For the stage `stage` of all cases, which must be open (measure/cuda/host_side.h). `others`:
  // how many more will be taken directly afterwards; they start at the same time.
  Result<CudaWorker> take_module(int stage, int others = 0);
  Result<CudaLink> take_capture();
  // Another one, if one is standing by: starts nothing.
  std::optional<CudaWorker> another();
  // Ends the process in the background.
  void retire(CudaLink link);
  // Waits until standby workers have created their contexts. Workers without a context exit, and
  // are waited for; if none is left, `take_native` reports it.
  void settle();
  // The same for those of PyTorch candidates alone.
  void settle_python();
  // Waits until all exiting processes are gone.
  void wait_for_leaving() { leaving_.clear(); }

 private:
  Result<CudaLink> start(Queues queues) const;
  Result<std::string> folder() const;
  void fill_modules(std::size_t wanted);
  void dismiss_native();

  const Task& task_;
  const EvaluateSettings& settings_;
  const std::vector<CudaCase>& cases_;
  std::deque<CudaLink> native_, captures_, modules_;
  int modules_to_come_;
  std::size_t native_to_come_ = 1;
  std::size_t host_forms_ = 1;  // processes that the latest evaluation in host form needed
  int few_in_a_row_ = 0;        // latest candidates in a row for which one queue was enough
  bool briefed_ = false;
  std::string uuid_;
  std::optional<Error> trouble_;  // why the latest worker did not start or has no context
  // Other GPUs' device files. The driver examines each GPU that a process can open, which is half
  // of the time to create a context (results/contexts.md).
  std::vector<std::string> hidden_;
  std::vector<std::future<void>> leaving_;
};

}  // namespace kernelpro
