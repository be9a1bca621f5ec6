// SPDX-License-Identifier: Apache-2.0
// One search on one task: measure, diagnose, change, verify, measure again, keep the best. The only
// room that knows all mechanisms.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/counters.h"
#include "core/objective.h"
#include "core/policy.h"
#include "core/proposal.h"
#include "core/task.h"
#include "propose/roles.h"
#include "run/gpu_use.h"

namespace kernelpro {

class ModuleReference;

struct RunSettings {
  std::string directory;  // of the run
  TargetKind target = TargetKind::kCpu;
  std::string proposer = "tuner";  // tuner | sweep | exchange | model | replay
  std::string replay_from;         // run directory, for replay
  std::uint64_t seed = 1;
  std::string search;              // search/searches.h; "" = the preset's own
  std::string preset = "default";  // search/parameters.h
  // Stoppers; whichever comes first.
  int max_evaluations = 60;
  double max_seconds = 600;
  double near_ceiling = 0.95;  // stop when the best is this close to the measured ceiling
  int plateau = 0;             // evaluations without a better one; 0: off
  double timeout_s = 30;       // for one call of a candidate
  double exchange_wait_s = 3600;
  RoleSettings roles;  // for models; their budgets are stoppers as well
  Feedback feedback = Feedback::kDiagnosed;
  std::string prompts;  // folder of prompts that replace embedded ones; "" = none
  // Runs whose best, and task folders whose kernel, are evaluated first and built on.
  std::vector<std::string> start_from;
  Objective objective;  // energy: cuda, native candidates
  Policy policy = Policy::kContract;
  bool probes = true;                     // centred and scaled inputs, perturbed parameters
  bool redraw = false;                    // cuda: new inputs for each evaluation
  bool timing = true;                     // false: verdicts alone
  std::string gpu;                        // cuda: UUID or index; "" the first
  std::vector<std::string> gpus;          // cuda: several that measure side by side, `gpu` first
  std::vector<std::string> include_dirs;  // cuda: that candidates may include from (libraries.h)
  // cuda: hardware counters of each new best candidate, or of each that is judged alone.
  CounterSet counters = CounterSet::kOff;
  bool profile_each = false;  // cuda: counters of every correct candidate, not of new bests alone
  int modules_ahead = 0;  // cuda: PyTorch candidates that are to come, so that Python may start now
  // File with the record of what came of findings: ranks them, and is told of every step; "" =
  // none. The run keeps what the file held when it began.
  std::string record;
  // File with facts (core/fact.h): what is of use here is told to writers, and what this run learns
  // is added; "" = none. The run keeps what it took from there when it began.
  std::string facts;
  bool memory = true;   // false: writers are told of the parent alone, and of nothing else tried
  int evaluations = 0;  // that are to come; 0: unknown. After the last, no worker is made ready
  int standby = 1;      // cuda: worker processes kept ready; brief calls are timed in all of them
};

// What has happened, for displays; each is emitted after its commit to the store.
struct Progress {
  // "prepared", "evaluated", "best", "busy" (other work disturbs the timing; told once), "waiting"
  // (for a writer), "model" (what one answered that is
  // of no use), "stopped", "confirmed", "unconfirmed" (a winner that did not hold in fresh
  // processes; the one before it is tried)
  std::string event;
  std::int64_t candidate = 0;
  std::string outcome;  // outcome_name
  std::string detail;   // one line
  std::string knobs;
  int evaluations = 0;
  int failures = 0;
  std::string failures_by_kind;  // "2 compile-error, 1 wrong-result"
  double time_us = 0;            // of this candidate
  double best_us = 0;
  // Over the start, by comparable times (run/ledger.h), with its 95 % interval; not confirmed, but
  // for the event "confirmed".
  double best_speedup = 1, best_speedup_low = 1, best_speedup_high = 1;
  double fraction_of_ceiling = 0;  // of the best
  bool ceiling_disturbed = false;  // other work ran beside every measurement of the ceilings
  double elapsed_s = 0;
  double left_s = 0;  // by the time budget
  int max_evaluations = 0;
};
using Observer = std::function<void(const Progress&)>;

// What a run came to; each has its exit status (docs/run-store.md#exit-statuses).
enum class RunEnd {
  kDone,
  kInterrupted,  // can be resumed
  kNothing,      // nothing was tried but the start, or nothing is correct; a resume tries again
};

struct RunResult {
  std::int64_t best = 0;
  double speedup = 1, speedup_low = 1,
         speedup_high = 1;  // over the start, confirmed in fresh processes
  double best_us = 0;
  double fraction_of_ceiling = 0;
  int evaluations = 0;
  std::string stopped_by;  // which stopper ended it
  RunEnd end = RunEnd::kDone;
  std::string next;                  // what to do next, unless `end` is kDone
  std::string held_out;              // lines about held-out cases (run/held_out.h); "" = none
  double own_ms_per_evaluation = 0;  // the loop's own cost: all but compiling, running, waiting
  GpuUse gpu_use;                    // of the search, this sitting's
};

// Creates the run directory and runs to a stopper. Fails with kStore if it exists and is not empty.
// `module`: the reference of a task with a Module, when one is running already (run/open_task.h);
// null starts one.
Result<RunResult> optimize(const Task& task, const RunSettings& settings, const Observer& observer,
                           std::shared_ptr<ModuleReference> module = nullptr);
// Goes on with a run of this machine's target where it was left; nothing evaluated is repeated.
// Settings of the first call hold, but for the budgets when `budgets` is given.
Result<RunResult> resume(const std::string& directory, const RunSettings* budgets,
                         const Observer& observer);

// The phases of an exchange by themselves, so that writing and measuring can happen on different
// machines: `propose` writes `count` requests into DIR/exchange and returns their folders; it needs
// neither compiler nor GPU. `measure` evaluates the replies that lie there, whatever the budgets,
// confirms the best and returns; it needs the machine that the run began on. Both hold the run's
// lock. A run's folder may be copied between them.
Result<std::vector<std::string>> propose(const std::string& directory, int count);
Result<RunResult> measure(const std::string& directory, const Observer& observer);

// Asks the run in this process to end after what it is doing now; safe in a signal handler. The run
// then returns with `stopped_by` = "interrupted" and can be resumed. Stays set until cleared.
void request_stop();
bool stop_requested();
void clear_stop();

}  // namespace kernelpro
