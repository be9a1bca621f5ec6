// SPDX-License-Identifier: Apache-2.0
// The mechanisms behind a local station (measure/station/local.h, which needs none of their types):
// machine, compiler, evaluator and collector. The only place that maps a TargetKind to these; tests
// put fakes behind TargetMaker.
#pragma once

#include <functional>
#include <future>
#include <memory>

#include "base/error.h"
#include "build/compiler.h"
#include "core/evidence/counters.h"
#include "core/evidence/evidence.h"
#include "core/machine/machine.h"
#include "core/task/task.h"
#include "measure/judge/evaluator.h"
#include "measure/station/ahead.h"
#include "measure/station/station.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

struct Target {
  std::unique_ptr<Machine> machine;
  std::shared_ptr<Compiler> compiler;       // null: no candidates (StationSettings::candidates)
  std::unique_ptr<Compiler> host_compiler;  // cuda only: builds reference.cpp
  std::unique_ptr<Evaluator> evaluator;     // null: judges none
  // Remeasures the machine's ceilings; if empty, they never change.
  std::function<Result<Machine>()> remeasure;
  // PyTorch's own times on a case (measure/station/baselines.h), under the GPU's lease; if empty,
  // there are none to be had here.
  std::function<Result<std::vector<Baseline>>(const Task&, const Case&, const BaselineOrder&)>
      baselines;
  // As collect_evidence (profile/collect/collect.h).
  std::function<Evidence(const Task&, const Case&, const Machine&, const Binary&, const Evaluation&,
                         const CallFacts&)>
      collect;
};

// `task` must outlive the target.
using TargetMaker =
    std::function<Result<Target>(const Task& task, const StationSettings& settings)>;

// The real one. Its evaluator gets the running reference, which has described the task; null: one
// is started if the task has a Module. `tools`: null: finds its own. Fails with kEnvironment when
// this machine or this build lacks the target.
Result<Target> make_target(const Task& task, const StationSettings& settings,
                           std::shared_ptr<ModuleReference> module = nullptr,
                           const ToolsAhead& tools = nullptr);
// One that compiles for `machine` and reads machine code. REQUIRES: the cuda target.
Result<Target> make_compiling_target(const Machine& machine, const StationSettings& settings);

// Stations on targets that `maker` makes (in parallel where there are several GPUs).
StationMaker local_stations(TargetMaker maker);

// Builds the task's references and has the evaluator run them. Fails with kTask when they do not
// compile, and as Evaluator::prepare does.
Result<void> prepare_target(const Task& task, TargetKind kind, const Target& target);

// Begins the work that evidence needs and an evaluation does not, in parallel with it: the
// disassembly of the timed cases' code. Wait for it (or drop it, which waits) before `observe`.
std::future<void> observe_ahead(const Task& task, TargetKind kind, const Subject& subject);
// The same, synchronous, for Workshop: disassemblers take longer than most evaluations. `task` must
// outlive it.
std::function<void(const Subject&)> disassemble_ahead(const Task& task, TargetKind kind);

// Evidence about a correct evaluation, from the timed case that took longest; empty for others.
// `counters`: the GPU's counters to collect for it now.
Evidence observe(const Task& task, TargetKind kind, Target* target, const Subject& subject,
                 const Evaluation& evaluation, CounterSet counters = CounterSet::kOff);
// What the machine code of a candidate shows that was not run, in the case that stands for the task
// (largest_timed); where none is timed, in the last.
Evidence inspect(const Task& task, TargetKind kind, const Target& target, const Subject& subject);

}  // namespace kernelpro
