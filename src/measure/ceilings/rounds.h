// SPDX-License-Identifier: Apache-2.0
// When to measure a machine's ceilings, how often, and what to keep: the best of repeated
// measurements. A measurement counts as quiet if nothing else ran. Decisions are pure; measuring
// and machine load are passed in as functions.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "core/machine/machine.h"
#include "measure/ceilings/ceilings.h"

namespace kernelpro {

struct CeilingRound {
  Machine machine;     // with the rates of this measurement only
  double foreign = 0;  // share of the machine used by other processes meanwhile
  bool quiet = true;   // nothing else ran
};
using MeasureRound = std::function<Result<CeilingRound>()>;

struct RoundsPlan {
  int most_quiet = 6;       // quiet measurements at most, whether or not they agree
  int most_busy = 6;        // measurements on a busy machine at most
  double agreement = 0.02;  // between the two highest values of each rate
};
// For a machine with known ceilings, which only quiet measurements can improve.
inline constexpr RoundsPlan kImprovePlan{6, 2, 0.02};

// Measures until two quiet measurements agree or the plan's limits are reached, at least once.
// Returns the machine with the best of each rate. Fails when the first measurement fails; a later
// failure ends the rounds.
Result<Machine> best_of_rounds(const MeasureRound& measure, const RoundsPlan& plan);

// Measuring takes seconds, and a machine that was busy a moment ago mostly still is.
inline constexpr int kBusyCeilingsLast = 300;  // seconds

// Whether cached ceilings are good enough not to measure again at `now` (utc_now()): quiet ones on
// the same UTC day, those from a busy machine for kBusyCeilingsLast.
bool still_good(const Ceilings& ceilings, const std::string& now);

// The cache file of a target's machine; `key` tells machines apart.
std::string ceilings_file(TargetKind target, const std::string& key);

// The machine from the cache file `path`, or measured and written there. Known rates are kept where
// they are better. Measures once per process unless `wanted` is kAgain, which always measures.
// `measurer` makes the function that measures; called only when needed.
Result<Machine> described_machine(const std::string& path, CeilingsWanted wanted,
                                  const std::function<Result<MeasureRound>()>& measurer,
                                  const std::string& now);

}  // namespace kernelpro
