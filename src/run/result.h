// SPDX-License-Identifier: Apache-2.0
// What a run tells while it goes on, and what it came to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "run/gpu_use.h"

namespace kernelpro {

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
  // Over the start, by comparable times (run/store/ledger.h), with its 95 % interval; not
  // confirmed, but for the event "confirmed".
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
  std::string held_out;              // lines about held-out cases (run/store/held_out.h); "" = none
  double own_ms_per_evaluation = 0;  // the loop's own cost: all but compiling, running, waiting
  GpuUse gpu_use;                    // of the search, this sitting's
};

}  // namespace kernelpro
