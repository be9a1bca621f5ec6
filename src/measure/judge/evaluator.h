// SPDX-License-Identifier: Apache-2.0
// The verdict on a candidate: checks it against the reference, times it against the incumbent, in
// processes of its own. One evaluator serves one task on one target; one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "build/compiler.h"
#include "core/binary.h"
#include "core/counters.h"
#include "core/evaluation.h"
#include "core/machine.h"
#include "core/policy.h"
#include "core/task.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

// In so many processes at most a brief call is timed alone: they differ by a percent.
inline constexpr int kTimingProcesses = 3;

// Processes of the cuda evaluator that were started before its task was known
// (measure/cuda/ahead.h).
struct CudaAhead;
// `gpu`: UUID or index; "" the first. `workers`: how many run candidates; 0 where only PyTorch
// candidates are to come. Returns at once; null where none can be started, which the evaluator then
// explains.
std::shared_ptr<CudaAhead> start_cuda_ahead(const std::string& gpu, int workers);

struct EvaluateSettings {
  double timeout_s = 30;              // for one call in one case, at most; a hang is ended after it
  int samples = 40;                   // timed pairs per timed case, at most
  double min_effect = 0.005;          // differences below this are ties
  std::uint64_t seed = 0;             // inputs are drawn from it; varied from check to check
  double alpha = 0.02;                // chance of declaring equals different, all looks together
  Compiler* host_compiler = nullptr;  // cuda: builds reference.cpp for the cross-check; may be null
  ModuleReference* module = nullptr;  // of a task with a Module: has described it; must outlive us
  Policy policy = Policy::kContract;
  bool probes = true;   // centred and scaled inputs, perturbed parameters
  bool redraw = false;  // cuda: new input sets for each evaluation
  bool timing = true;   // false: verdicts alone, on two input sets, without an incumbent
  std::string gpu;      // cuda: UUID or index; "" the first
  int evaluations = 0;  // cuda: that are to come; 0: unknown. After the last, no worker is started
  int standby =
      1;  // cuda: worker processes that are started at once, when none is left; a
          // brief call that is timed alone is timed in all that are there, kTimingProcesses at most
  std::shared_ptr<CudaAhead>
      ahead;              // cuda: used if they are on `gpu`, by one evaluator; may be null
  int modules_ahead = 0;  // cuda: PyTorch candidates that are to come; their processes start early
  CounterSet counters = CounterSet::kOff;  // cuda: of which `profile` will be asked; made ready
};

// How long energy is looked at: windows of each of the two, and their length. An H200's counter
// moves ten times a second; five windows of a second vary by 0.1 to 0.3 %.
struct EnergyPlan {
  int windows = 3;
  double window_s = 0.5;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Builds and runs the references. Fails with kTask when they do not compile, crash, disagree
  // with themselves or each other, or the task is degenerate (an output that is constant or
  // independent of the inputs); with kEnvironment or kBadInput when a case does not fit.
  virtual Result<void> prepare() = 0;
  // Never throws for what a candidate does; an Error here is the machine's fault.
  // `incumbent` may be null: then the candidate is timed alone.
  virtual Result<Evaluation> evaluate(const Subject& subject, const Subject* incumbent) = 0;
  // What holds for every verdict on this task here, as names for Correct::labels
  // ("float64-at-reduced-case"). Valid after prepare().
  virtual std::vector<std::string> task_labels() const { return {}; }
  // The launch plan of a native cuda candidate that was evaluated, for the case number `at` of
  // cases_for(task, target), without counters; nullopt where there is none.
  virtual std::optional<CallFacts> call_facts(const Subject& /*subject*/,
                                              std::size_t /*at*/) const {
    return std::nullopt;
  }
  // Hardware counters of one call of a correct candidate. No verdict depends on them: what cannot
  // be had is in `missing`.
  virtual CounterAnswers profile(const Subject& /*subject*/, std::size_t /*at*/, CounterSet) {
    return {};
  }
  // What a call of a correct candidate draws in the largest timed case, beside the incumbent's (may
  // be null). An Outcome: it went wrong while looked at. Fails where energy cannot be measured: the
  // message says what to do.
  virtual Result<std::variant<Energy, Outcome>> energy(const Subject& /*subject*/,
                                                       const Subject* /*incumbent*/,
                                                       const EnergyPlan& /*plan*/) {
    return fail(ErrorKind::kBadInput, "energy is measured on the cuda target alone",
                "leave out --objective, or choose --target cuda");
  }
  // As evaluate, in fresh processes, with more samples, for the final winner.
  virtual Result<Evaluation> confirm(const Subject& subject, const Subject& incumbent) = 0;
};

// `task`, `compiler` and `machine` must outlive the evaluator.
Result<std::unique_ptr<Evaluator>> make_cpu_evaluator(const Task& task, Compiler& compiler,
                                                      const Machine& machine,
                                                      const EvaluateSettings& settings);
Result<std::unique_ptr<Evaluator>> make_cuda_evaluator(const Task& task, Compiler& compiler,
                                                       const Machine& machine,
                                                       const EvaluateSettings& settings);

}  // namespace kernelpro
