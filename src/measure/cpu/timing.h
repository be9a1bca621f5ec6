// SPDX-License-Identifier: Apache-2.0
// Times a candidate on one case, alternating with an incumbent, each in its own process and memory,
// or alone.
//
// Only the supervisor's clock counts. It runs from the moment that a stopped worker may resume, the
// inputs of one call just revealed, until it answers; it is stopped before anything else is
// revealed, and results that change between answer and stop are rejected. So a call is timed by
// itself, however short it is; a turn is the sum of several. A worker of ours that runs no
// candidate code measures the cost of an order, which is subtracted from both sides, as far as no
// other thread worked meanwhile. Nothing that the candidate's process reports or does can improve
// its time.
//
// Every timed call gets inputs that its process has never seen, so cached results are useless, and
// the outputs of all timed calls are compared. A process that has seen all inputs is replaced, in
// new memory: nothing that it left can be found by the next one.
//
// Load from other processes is observed during each turn (machine/host_load.h) and judged before
// the turn's time is looked at. A disturbed turn is measured again and a disturbed pair dropped
// whole, until TimingPlan::most_dropped; after that the machine is taken as it is, and the verdict
// notes it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/statistics/statistics.h"
#include "core/evaluation/evaluation.h"
#include "measure/cpu/case.h"
#include "measure/cpu/session.h"
#include "measure/cpu/values.h"
#include "measure/judge/probes.h"

namespace kernelpro {

struct TimingPlan {
  double timeout_s = 30;  // of one call
  int max_pairs = 40;
  double budget_s = 1.0;  // after which `enough_pairs` is enough
  int enough_pairs = 9;
  double hard_budget_s = 12;  // after which three pairs are enough; a clear ratio needs fewer
  double min_effect = 0.005;
  double alpha = 0.02;     // chance of a wrong declaration on this case, over all looks
  bool stop_early = true;  // once decided (base/statistics/contest.h)
  int most_dropped = 10;   // limit on disturbed pairs and turns to measure again
  // Those that the candidate has passed. Each comes again in one call of a turn that looks like all
  // others.
  std::vector<const ProbeSet*> probes;
  // Whether to compare times on probes with those on the task's own values: where honest kernels
  // neither branch nor compute exponentials by them.
  bool compares_values = false;
};

struct Timed {
  Timing timing;
  std::optional<Interval> ratio;  // incumbent's time over candidate's
  double max_error = 0;
  std::vector<ProbeFailure> failures;  // of probes among timed calls
  std::vector<NormError> norms;        // of calls in turns, where that of honest errors is known
  std::vector<ValueTimes::Slower> slower;  // probes on which the candidate takes longer
  // "cpu.threads_busy", "load.foreign_cpu" (share of the machine that others used during turns that
  // count), "load.pairs_dropped", "load.pairs_disturbed" (pairs that count all the same) ...
  std::map<std::string, double> observed;
  std::string note;  // if the machine never calmed down, else ""
};

using SessionMaker = std::function<Result<CpuSession::Started>(const Binary&)>;

// `candidate` has passed its checks. `incumbent` may be null; if it fails here, the ratio is left
// out. An Outcome: the candidate's fault. REQUIRES: state.slots >= 2.
Result<std::variant<Timed, Outcome>> time_case(const CpuCase& state, const SessionMaker& start,
                                               const Binary& candidate, const Binary* incumbent,
                                               const TimingPlan& plan);

}  // namespace kernelpro
