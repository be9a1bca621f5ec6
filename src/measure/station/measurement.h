// SPDX-License-Identifier: Apache-2.0
// The stage of a candidate's life that needs a GPU, isolated: an order contains all it needs to
// know of the run, so that several GPUs can carry out orders in parallel while the run continues.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "build/build_pool.h"
#include "core/evidence.h"
#include "measure/station/settings.h"
#include "measure/station/target.h"

namespace kernelpro {

// The order to measure a candidate, with the run's state at that time.
struct MeasureOrder {
  BuiltKernel built;
  std::string code;                     // hash of its machine code; "" = none
  std::optional<Subject> incumbent;     // the best so far
  double incumbent_us = 0;              // in the measure of comparable times (run/store/ledger.h)
  double fastest_source_us = 0;         // of candidates other than PyTorch's; 0: none
  std::optional<Evaluation> as_before;  // already evaluated: only observations are missing
};

struct Measured {
  std::optional<Evaluation> evaluation;  // nullopt: ended from outside before there was one
  Evidence evidence;
  Subject subject;                   // if it compiled
  std::optional<Ceilings> ceilings;  // better than those of the run, measured meanwhile
};

using Phase = std::function<void(const std::string&)>;  // "checking and timing", ...; may be empty

// On any thread, one at a time for a target. An Error is always the machine's fault. Honours this
// thread's CancelScope (base/cancel.h).
Result<Measured> carry_out(const Task& task, const StationSettings& settings, Target* target,
                           const MeasureOrder& order, const Phase& phase);

}  // namespace kernelpro
