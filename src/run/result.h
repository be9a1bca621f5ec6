// SPDX-License-Identifier: Apache-2.0
// Progress events of a run, and its result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/proposal/event.h"
#include "run/gpu_use.h"

namespace kernelpro {

// An event for displays, emitted after its commit to the store.
struct Progress {
  Event event = Event::kNote;
  std::int64_t candidate = 0;
  std::string outcome;  // outcome_name
  std::string detail;   // one line
  std::string knobs;
  int evaluations = 0;
  int failures = 0;
  std::string failures_by_kind;  // "2 compile-error, 1 wrong-result"
  double time_us = 0;            // of this candidate
  double best_us = 0;
  // Versus the start, by comparable times (run/store/ledger.h), with its 95 % interval;
  // unconfirmed, except in the event kConfirmed.
  double best_speedup = 1, best_speedup_low = 1, best_speedup_high = 1;
  double fraction_of_ceiling = 0;  // of the best
  bool ceiling_disturbed = false;  // other work ran during every measurement of the ceilings
  double elapsed_s = 0;
  double left_s = 0;  // until a budget ends the search, at its pace so far
  int max_evaluations = 0;
};
using Observer = std::function<void(const Progress&)>;

// RunResult::stopped_by of a run that was asked to stop.
inline constexpr const char* kStoppedByRequest = "interrupted";

// How a run ended; each value has an exit status (docs/run-store.md#exit-statuses).
enum class RunEnd {
  kDone,
  kInterrupted,  // can be resumed
  kNothing,      // nothing was tried but the start, or nothing is correct; a resume retries
};

struct RunResult {
  std::int64_t best = 0;
  double speedup = 1, speedup_low = 1,
         speedup_high = 1;  // versus the start, confirmed in fresh processes
  double best_us = 0;
  double fraction_of_ceiling = 0;
  int evaluations = 0;
  std::string stopped_by;  // the stopper that ended it
  RunEnd end = RunEnd::kDone;
  std::string next;                  // what to do next, unless `end` is kDone
  std::string held_out;              // lines about held-out cases (run/store/held_out.h); "" = none
  double own_ms_per_evaluation = 0;  // the loop's overhead: all but compiling, running, waiting
  GpuUse gpu_use;                    // of the search, in this sitting
};

}  // namespace kernelpro
