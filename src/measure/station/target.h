// SPDX-License-Identifier: Apache-2.0
// The mechanisms behind a local station (measure/station/local.h): machine, compiler, evaluator and
// collector. The only place that maps a TargetKind to these; tests put fakes behind TargetMaker.
#pragma once

#include <functional>
#include <future>
#include <memory>

#include "base/error.h"
#include "build/compiler.h"
#include "core/counters.h"
#include "core/evidence.h"
#include "core/machine.h"
#include "core/task.h"
#include "measure/judge/evaluator.h"
#include "measure/station/settings.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

struct Target {
  std::shared_ptr<ModuleReference> module;  // of a task with a Module
  std::unique_ptr<Machine> machine;
  std::shared_ptr<Compiler> compiler;
  std::unique_ptr<Compiler> host_compiler;  // cuda only: builds reference.cpp
  std::unique_ptr<Evaluator> evaluator;
  // Remeasures the machine's ceilings; if empty, they never change.
  std::function<Result<Machine>()> remeasure;
  // As collect_evidence (profile/collect/collect.h).
  std::function<Evidence(const Task&, const Case&, const Machine&, const Binary&, const Evaluation&,
                         const CallFacts&)>
      collect;
};

// `task` must outlive the target.
using TargetMaker =
    std::function<Result<Target>(const Task& task, const StationSettings& settings)>;

// The real one; starts the reference of a task with a Module. Fails with kEnvironment when this
// machine or this build lacks the target.
Result<Target> make_target(const Task& task, const StationSettings& settings);
// The parts of a target that do not depend on its task. Made in the background while the task is
// still being opened: compilers report their versions, the evaluator's processes create contexts.
struct Tools {
  Machine machine;
  std::unique_ptr<Compiler> compiler;
  std::shared_ptr<CudaAhead> processes;  // cuda; may be null
};
using ToolsAhead = std::shared_ptr<std::future<Result<Tools>>>;
// Uses of `settings`: target, gpu, include_dirs. `workers`: as for start_cuda_ahead.
ToolsAhead begin_tools(const StationSettings& settings, int workers);

// As make_target, with a running reference that has described the task; null: starts one. It and
// `tools` (null: each target finds its own) are for the first GPU of a run.
TargetMaker target_with(std::shared_ptr<ModuleReference> module, ToolsAhead tools = nullptr);

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

}  // namespace kernelpro
