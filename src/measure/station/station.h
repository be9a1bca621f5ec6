// SPDX-License-Identifier: Apache-2.0
// A place where the candidates of one task are built, judged, timed and profiled. Everything that
// measures goes through one: searches, `evaluate`, MCP sessions, confirmations, held-out cases,
// PyTorch's own times.
// Orders and answers are plain values (measure/station/order.h); callbacks only report progress.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation/baseline.h"
#include "core/machine/machine.h"
#include "core/task/task.h"
#include "measure/station/order.h"
#include "measure/station/settings.h"

namespace kernelpro {

using Phase = std::function<void(const std::string&)>;  // "checking and timing", ...; may be empty

class Station {
 public:
  virtual ~Station() = default;

  // The machine as it was when the station was opened. Safe from any thread.
  virtual const Machine& machine() const = 0;
  virtual std::string compiler() const = 0;  // "g++ 12.2.0 -O3 -march=native"; "" = none
  virtual std::string name() const = 0;      // for messages: "GPU 1"

  // Builds and runs the references. Fails as Evaluator::prepare does.
  virtual Result<void> prepare() = 0;

  // Builds in the background, ahead of `measure`; `done` is called on another thread once the
  // answer is there, and may be empty. Safe from any thread.
  virtual Building begin(const Candidate& candidate, std::function<void()> done) = 0;
  // Drops builds that have not started, for which nobody may wait any more, and waits for the
  // others.
  virtual void drop_builds() = 0;
  // Waits for a build that was begun, or builds on this thread, under its CancelScope.
  virtual Result<Built> build(const Candidate& candidate) = 0;

  // REQUIRES: prepared. One at a time, on any thread. An Error is always the fault of the machine,
  // or of an incumbent that no longer compiles. Honours this thread's CancelScope (base/cancel.h).
  virtual Result<Measured> measure(const Order& order, const Phase& phase) = 0;

  // Times PyTorch on the task's module; blocks, for minutes if it remembers nothing. Needs no
  // preparation. Empty if the task has no timed case. Fails with kBadInput for a task without a
  // Module, with kEnvironment without a usable PyTorch or GPU; a method that fails says so in its
  // `error`. Not during `measure`.
  virtual Result<std::vector<Baseline>> baselines(const BaselineOrder& order) = 0;

  // Measures the machine's ceilings again; nullopt where that would disturb other stations. Not
  // during `measure`.
  virtual Result<std::optional<Ceilings>> remeasure() = 0;
};

// Opens the stations of a task: one for each GPU of `settings.gpus`, in that order, or a single
// one. `task` must outlive them.
using Stations = std::vector<Result<std::unique_ptr<Station>>>;
using StationMaker = std::function<Stations(const Task& task, const StationSettings& settings)>;

// Begins to prepare all stations but the first, in the background; one future for each that was
// opened.
using Readiness = std::shared_future<Result<void>>;
std::vector<Readiness> prepare_others(const Stations& stations);

// Closes stations in parallel: each waits for its processes to end.
void close_all(Stations* stations);

}  // namespace kernelpro
