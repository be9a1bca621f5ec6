// SPDX-License-Identifier: Apache-2.0
// The processes that run candidates. They are made ready ahead, because a context takes longer than
// an evaluation and importing PyTorch takes seconds; each is taken once and ends after it. Nothing
// may come or go while calls are timed: `settle` and `wait_for_leaving` see to that. One thread.
#pragma once

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

class CudaCrew {
 public:
  // All must outlive it. `cases` may be filled later.
  CudaCrew(const Task& task, const EvaluateSettings& settings, const std::vector<CudaCase>& cases)
      : task_(task), settings_(settings), cases_(cases), modules_to_come_(settings.modules_ahead) {}
  ~CudaCrew() { dismiss(); }
  CudaCrew(const CudaCrew&) = delete;
  CudaCrew& operator=(const CudaCrew&) = delete;

  // Native workers that were started before the task was known.
  void adopt(std::deque<CudaLink> workers) { native_ = std::move(workers); }
  // Starts as many native workers as the settings say, of the kind that is wanted lately, when the
  // last of them were used up. Returns at once. What goes wrong is told by `take_native`.
  void fill();
  // The same for PyTorch candidates.
  void fill_modules();
  // The cases are known: those that wait are told of them, and so are all that are started later,
  // on the GPU `uuid`, without these device files, which are other GPUs' (machine/gpu_watch.h).
  void brief(const std::string& uuid, std::vector<std::string> hidden);
  // From now on workers see all GPUs, as NVML may want, which they open to measure energy.
  void hide_nothing();
  // All leave, side by side.
  void dismiss();

  // One that is ready. Fails for the machine's sake.
  Result<CudaWorker> take_native(Queues queues);
  Result<CudaWorker> take_module();
  // A further one, if one stands by: starts nothing.
  std::optional<CudaWorker> another();
  // Ends it in the background.
  void retire(CudaLink link);
  // Waits until those who stand by have made their contexts. Who has none leaves, which
  // is waited for as well; when none is left, that is told by `take_native`.
  void settle();
  // Waits until nobody is on the way out.
  void wait_for_leaving() { leaving_.clear(); }

 private:
  Result<CudaLink> start() const;
  void dismiss_native();

  const Task& task_;
  const EvaluateSettings& settings_;
  const std::vector<CudaCase>& cases_;
  std::deque<CudaLink> native_, modules_;
  int modules_to_come_;
  int few_in_a_row_ = 0;  // workers that one queue did for, up to the latest
  bool briefed_ = false;
  std::string uuid_;
  std::optional<Error> trouble_;  // why the latest could not be started, or has no context
  // Other GPUs' device files. The driver looks at each GPU that a process can open, which takes
  // half of the time that a context takes (results/contexts.md).
  std::vector<std::string> hidden_;
  std::vector<std::future<void>> leaving_;
};

}  // namespace kernelpro
