// SPDX-License-Identifier: Apache-2.0
// The verdict on a candidate: checks it against the reference and times it against the incumbent,
// in separate processes. One evaluator serves one task on one target; one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "core/evaluation/evaluation.h"
#include "core/evidence/counters.h"
#include "core/machine/machine.h"
#include "core/plan/binary.h"
#include "core/task/policy.h"
#include "core/task/task.h"
#include "measure/judge/energy_plan.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

// Most processes in which a brief call is timed alone: their times differ by a percent.
inline constexpr int kTimingProcesses = 3;

// Processes that were started before their evaluator's task was known. Each kind of evaluator knows
// its own.
struct Ahead {
  virtual ~Ahead() = default;
};

struct EvaluateSettings {
  double timeout_s = 30;  // for one call in one case, at most; a hang is killed then
  int samples = 40;       // timed pairs per timed case, at most
  double min_effect = kLeastEffect;
  double alpha = 0.02;  // chance of declaring equals different, over all looks
  // Of a task with a Module: has described it. The evaluator drives the process and owns it, in
  // turn with evaluators of the same module in other cases (held-out ones): it ends with the last.
  std::shared_ptr<ModuleReference> module = nullptr;
  Policy policy = Policy::kContract;
  bool probes = true;   // other values of the same shapes (measure/judge/probes.h)
  int probes_each = 0;  // how many kinds of them `evaluate` runs, at random; 0, and `confirm`: all
  double row_s = 0.3;   // cuda: of calls in a row, where all kinds run; `confirm`: three times that
  bool redraw = false;  // cuda: new input sets for each evaluation
  bool timing = true;   // false: verdicts alone, on two input sets, without an incumbent
  std::string gpu;      // cuda: UUID or index; "" the first
  int evaluations = 0;  // cuda: still to come; 0: unknown. After the last, no worker is started
  int standby =
      1;  // cuda: worker processes that are started together when none is left; a
          // brief call that is timed alone is timed in all of them, kTimingProcesses at most
  // cuda: those of start_cuda_ahead; used if they are on `gpu`, by one evaluator; may be null.
  std::shared_ptr<Ahead> ahead;
  int modules_ahead = 0;  // cuda: PyTorch candidates still to come; their processes start early
  // cuda: those that `profile` will want, and `sample` with them (core/evidence/counters.h);
  // prepared early.
  CounterSet counters = CounterSet::kOff;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Runs the references (build/build.h builds them). Fails with kTask when they crash, disagree
  // with themselves or each other, or the task is degenerate (an output that is constant or
  // independent of the inputs); with kEnvironment or kBadInput when a case does not fit.
  virtual Result<void> prepare(const References& references) = 0;
  // Never throws for anything that a candidate does; an Error is the machine's fault. `incumbent`
  // may be null: then the candidate is timed alone. cuda: a variant is screened first, by its
  // checks and a few pairs of calls; where it is not clearly faster than its incumbent, that is all
  // (is_screened), and its time and interval are rough.
  virtual Result<Evaluation> evaluate(const Subject& subject, const Subject* incumbent) = 0;
  // Labels that apply to every verdict on this task here, as names for Correct::labels
  // ("float64-at-reduced-case"). Valid after prepare().
  virtual std::vector<std::string> task_labels() const { return {}; }
  // The launch plan of an evaluated cuda candidate, for the case number `at` of
  // cases_for(task, target), without counters; nullopt if there is none, as of a PyTorch candidate
  // in host form.
  virtual std::optional<CallFacts> call_facts(const Subject& /*subject*/,
                                              std::size_t /*at*/) const {
    return std::nullopt;
  }
  // Hardware counters of one call of a correct candidate. No verdict depends on them: those that
  // cannot be read are in `missing`.
  virtual CounterAnswers profile(const Subject& /*subject*/, std::size_t /*at*/, CounterSet) {
    return {};
  }
  // Program-counter samples of the same call, by the same rules.
  virtual SampleAnswers sample(const Subject& /*subject*/, std::size_t /*at*/) { return {}; }
  // Energy per call of a correct candidate in the largest timed case, with the incumbent's (may
  // be null). An Outcome: it failed meanwhile. Fails where energy cannot be measured: the message
  // gives the remedy.
  virtual Result<std::variant<Energy, Outcome>> energy(const Subject& /*subject*/,
                                                       const Subject* /*incumbent*/,
                                                       const EnergyPlan& /*plan*/) {
    return fail(ErrorKind::kBadInput, "energy is measured on the cuda target alone",
                "leave out --objective or --energy, or choose --target cuda");
  }
  // As evaluate, in fresh processes, with more samples, for the final winner.
  virtual Result<Evaluation> confirm(const Subject& subject, const Subject& incumbent) = 0;
};

}  // namespace kernelpro
