// SPDX-License-Identifier: Apache-2.0
// The part of a candidate's way that a GPU is needed for, by itself: what it has to know of the run
// stands in an Order, so that several GPUs carry out orders side by side while the run goes on.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "build/build_pool.h"
#include "core/evidence.h"
#include "measure/station/settings.h"
#include "measure/station/target.h"

namespace kernelpro {

// What to measure, and what the run knew when that was decided.
struct MeasureOrder {
  BuiltKernel built;
  std::string code;                     // hash of its machine code; "" = none
  std::optional<Subject> incumbent;     // the best so far
  double incumbent_us = 0;              // in the measure of comparable times (run/store/ledger.h)
  double fastest_source_us = 0;         // of candidates that are not PyTorch's; 0: none
  std::optional<Evaluation> as_before;  // it was evaluated: only what is observed is missing
};

struct Measured {
  std::optional<Evaluation> evaluation;  // nullopt: ended from outside before it was one
  Evidence evidence;
  Subject subject;                   // when it compiled
  std::optional<Ceilings> ceilings;  // better ones than the run knows, measured meanwhile
};

using Phase = std::function<void(const std::string&)>;  // "checking and timing", ...; may be empty

// On any thread, one at a time for a target. Fails for the machine's sake alone. Honours this
// thread's CancelScope (base/cancel.h).
Result<Measured> carry_out(const Task& task, const StationSettings& settings, Target* target,
                           const MeasureOrder& order, const Phase& phase);

}  // namespace kernelpro
