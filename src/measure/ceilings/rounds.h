// SPDX-License-Identifier: Apache-2.0
// When a machine's ceilings are measured, how often, and what is kept: the best of repeated
// measurements, of which those without other work beside them count as quiet. Decisions are pure;
// measuring and the load of the machine come in as functions.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "core/machine.h"
#include "measure/ceilings/ceilings.h"

namespace kernelpro {

struct CeilingRound {
  Machine machine;     // with the rates of this measurement alone
  double foreign = 0;  // share of the machine that others used meanwhile
  bool quiet = true;   // nothing else ran
};
using MeasureRound = std::function<Result<CeilingRound>()>;

struct RoundsPlan {
  int most_quiet = 6;       // measurements on a quiet machine, whether they agree or not
  int most_busy = 6;        // measurements beside other work
  double agreement = 0.02;  // between the two highest of each rate
};
// Where ceilings of this machine are known, and only a quiet machine can improve them.
inline constexpr RoundsPlan kImprovePlan{6, 2, 0.02};

// Measures until two quiet measurements agree, or the plan's limits; at least one measurement of
// each kind of machine is allowed. The machine with the best of each rate. Fails when the first
// measurement fails; a later failure ends the rounds.
Result<Machine> best_of_rounds(const MeasureRound& measure, const RoundsPlan& plan);

// Are these cached ceilings good enough not to measure again at `now` (utc_now())? Those that were
// measured beside other work never are, quiet ones for a day.
bool still_good(const Ceilings& ceilings, const std::string& now);

// The machine from the cache file `path`, or measured and written there. What was known of it stays
// as far as it is better. Measures once in a process unless `wanted` is kAgain, which measures
// whatever is known. `measurer`: makes the function that measures; called only when needed.
Result<Machine> described_machine(const std::string& path, CeilingsWanted wanted,
                                  const std::function<Result<MeasureRound>()>& measurer,
                                  const std::string& now);

}  // namespace kernelpro
